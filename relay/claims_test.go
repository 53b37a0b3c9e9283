package relay

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"hdsd/peer/limit"
)

func (c *claims) set(versions map[string]string) {
	c.reserve(len(versions))
	for name, version := range versions {
		c.add([]byte(name), []byte(version))
	}
	c.trim()
}

// TestClaims holds claims against a map.
func TestClaims(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pool := limit.NewPool(limit.Limit{Total: 2})
		c := claims{takeRoom: func(names int64) (*limit.Lease, error) { return pool.Take("x", names, nil) }}
		name, version := rapid.StringMatching("[a-c]?"), rapid.StringMatching("[0-2]?")
		oracle := map[string]string{}
		for range 20 {
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				oracle = rapid.MapOf(name, version).Draw(t, "claims")
				c.set(oracle)
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
	c := claims{takeRoom: func(names int64) (*limit.Lease, error) {
		if asked = names; full {
			return nil, errors.New("full")
		}
		return nil, nil
	}}
	c.set(map[string]string{"a": "1", "b": "1"})
	same := func(name string) bool {
		_, same := c.settle(name, "1")
		return same
	}
	if asked != 1 || !same("a") {
		t.Errorf("2 claims count as %d names and are not kept", asked)
	}
	full = true
	versions := map[string]string{}
	for i := range 10 * claimsPerName {
		versions[fmt.Sprint(i)] = "1"
	}
	if c.set(versions); asked != 10 || same("1") || same("b") {
		t.Errorf("%d claims count as %d names and are kept without room", len(versions), asked)
	}
}
