package relay

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"hdsd/internal/share"
)

// TestClaims holds claims against a map.
func TestClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pool := share.NewPool(share.Limit{Total: 2})
		c := claims{take: func(names int64) (*share.Lease, error) { return pool.Take("x", names, nil) }}
		name, version := rapid.StringMatching("[a-c]?"), rapid.StringMatching("[0-2]?")
		oracle := map[string]string{}
		for range 20 {
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				oracle = rapid.MapOf(name, version).Draw(t, "claims")
				var all []claim
				for name, version := range oracle {
					all = append(all, claimOf(name, version))
				}
				c.set(all)
			}
			n, v := name.Draw(t, "name"), version.Draw(t, "version")
			before, known := oracle[n]
			if claimed, got := c.settle(n, v); claimed != known || got != (known && before == v) {
				t.Fatalf("settle(%q, %q) = %t, %t", n, v, claimed, got)
			}
			delete(oracle, n)
			if taken := pool.Usage().Taken > 0; taken != (len(oracle) > 0) {
				t.Fatalf("room taken: %t, with %d claims", taken, len(oracle))
			}
		}
	})
}

// TestClaimsWithoutRoomAreNotKept, and those before are forgotten as well.
func TestClaimsWithoutRoomAreNotKept(t *testing.T) {
	t.Parallel()
	var asked int64
	full := false
	c := claims{take: func(names int64) (*share.Lease, error) {
		if asked = names; full {
			return nil, errors.New("full")
		}
		return nil, nil
	}}
	c.set([]claim{claimOf("a", "1"), claimOf("b", "1")})
	same := func(name string) bool {
		_, same := c.settle(name, "1")
		return same
	}
	if asked != 1 || !same("a") {
		t.Errorf("2 claims count as %d names and are not kept", asked)
	}
	full = true
	var many []claim
	for i := range 10 * claimsPerName {
		many = append(many, claimOf(fmt.Sprint(i), "1"))
	}
	if c.set(many); asked != 10 || same("1") || same("b") {
		t.Errorf("%d claims count as %d names and are kept without room", len(many), asked)
	}
}
