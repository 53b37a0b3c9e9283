package hostile

import (
	"testing"
)

func TestBadInputHarmsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, attack := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"wrong protocol", s.wrongProtocol},
		{"floods", s.floods},
		{"missing nodes", s.missingNodes},
		{"strangers", s.strangers},
		{"large messages", s.largeMessages},
		{"invalid text", s.invalidText},
		{"too many names", s.tooManyNames},
		{"enormous metadata", s.enormousMetadata},
		{"bad queries", s.badQueries},
		{"half-open and garbage", s.halfOpen},
		{"slow readers", s.readsNothing},
	} {
		t.Run(attack.name, func(t *testing.T) { s.under(t, attack.run) })
	}
}
