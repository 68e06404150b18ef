// A small web service with two routes. -extra is the extra work of /search in percent.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/http"
)

// rounds is the work of a request to /search: about one millisecond.
const rounds = 20000

func main() {
	extra := flag.Int("extra", 0, "extra work of /search, in percent")
	flag.Parse()
	count := rounds + rounds**extra/100

	http.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, digest(rounds/20))
	})
	http.HandleFunc("GET /search", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, digest(count))
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:9150", nil))
}

func digest(rounds int) string {
	sum := sha256.Sum256([]byte("stillwell"))
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}
