package validate_test

import (
	"strings"
	"testing"
)

// TestLoadReportsToHdsdAreWarnedOf: without a relay, nobody gets them.
func TestLoadReportsToHdsdAreWarnedOf(t *testing.T) {
	for more, want := range map[string]int{"  lrs_server: {self: {}}": 1, "": 0} {
		found := examineText(t, cluster("", more)).Problems
		if len(found) != want || want == 1 && (!found[0].Warning || !strings.Contains(found[0].Message, "lrs_server.self: ")) {
			t.Errorf("%q: %v", more, found)
		}
	}
}
