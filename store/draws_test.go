//go:build race && !soak

package store

import "flag"

// Properties draw a quarter with the race detector: make test draws all without it, and make soak
// with it.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
