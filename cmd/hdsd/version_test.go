package main

import (
	"runtime/debug"
	"testing"

	"hdsd/check"
	"hdsd/envoy/specifier"
)

func TestVersionOfABuild(t *testing.T) {
	for of, want := range map[string]string{
		"":        "dev",
		"(devel)": "dev",
		"v1.2.3":  "v1.2.3",
		"v0.0.0-20260102120000-180d76e0c0de+dirty": "v0.0.0-20260102120000-180d76e0c0de+dirty",
	} {
		if got := versionOf(&debug.BuildInfo{Main: debug.Module{Version: of}}, true); got != want {
			t.Errorf("built from %q: %q", of, got)
		}
	}
	if got := versionOf(nil, false); got != "dev" {
		t.Errorf("without build info: %q", got)
	}
}

// TestTheCheckerSaysWhatVersionSays: there is one version of a binary.
func TestTheCheckerSaysWhatVersionSays(t *testing.T) {
	says := check.Introduction(&check.Options{NodeID: "checker-1", Version: version})
	checker, err := specifier.CheckerFromNode(says.GetNode(), says.GetCapability())
	if want := "hdsd/" + version; err != nil || checker.Version != want {
		t.Errorf("the checker says %q, want %q; %v", checker.Version, want, err)
	}
}
