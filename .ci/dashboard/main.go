// Reads a dashboard strictly, by Grafana's own types: an unknown key, a missing one or a wrong type is an error.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	panels, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s is not a dashboard of Grafana:\n%v\n", os.Args[1], err)
		os.Exit(1)
	}
	fmt.Printf("Grafana's types: %d panels, no error\n", panels)
}

func read(path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var board dashboard.Dashboard
	// Without errors it returns an empty list of them.
	if err := board.UnmarshalJSONStrict(text); err != nil && err.Error() != "" {
		return 0, err
	}
	return len(board.Panels), board.Validate()
}
