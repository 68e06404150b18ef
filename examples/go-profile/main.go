// A small web service that serves its own profiles. With -hot, each request checks its answer in a costly way.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"sync"
)

var (
	lock  sync.Mutex
	cache = map[string]string{}
)

func main() {
	hot := flag.Bool("hot", false, "check each answer in a costly way")
	flag.Parse()
	runtime.SetMutexProfileFraction(1)
	http.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		text := digest(600)
		if *hot {
			verifyChecksum(text)
		}
		lock.Lock()
		cache[text] = text
		lock.Unlock()
		fmt.Fprintln(w, text)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:9151", nil))
}

func digest(rounds int) string {
	sum := sha256.Sum256([]byte("stillwell"))
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	return hex.EncodeToString(sum[:])
}

// verifyChecksum is the planted mistake: it sums the text again and again.
//
//go:noinline
func verifyChecksum(text string) bool {
	sum := 0
	for range 20 * len(text) {
		for index := range text {
			sum = sum*31 + int(text[index])
		}
	}
	return sum != 0
}
