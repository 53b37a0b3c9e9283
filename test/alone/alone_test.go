package alone

import (
	"flag"
	"os"
	"slices"
	"testing"

	"hdsd/test/envoy"
)

// TestMain plays all cases of a rig at the same time: they wait for most of their time.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "64")
	os.Exit(m.Run())
}

// all are the cases that one rig plays.
var all = slices.Concat(failures, requests, weights, moves, lost, uncheckable)

var releases = []string{"1.36.4", "1.38.3", envoy.Version}

// eachRelease runs a test for each release of Envoy that is played.
func eachRelease(t *testing.T, run func(t *testing.T, version string)) {
	t.Helper()
	for _, version := range releases {
		if version == envoy.Version || full() {
			t.Run(version, func(t *testing.T) { run(t, version) })
		}
	}
}

// TestAsAlone plays each case with both data planes.
func TestAsAlone(t *testing.T) {
	var played []Result
	eachRelease(t, func(t *testing.T, version string) {
		rig := NewRig(t, Options{Version: version, Checkers: 3})
		t.Run("case", func(t *testing.T) { rig.Run(t, all) })
		played = append(played, rig.results...)
	})
	if *update && full() && !t.Failed() {
		saveResults(t, played)
	}
}
