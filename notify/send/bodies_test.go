package send

import (
	"encoding/json"
	"strings"
	"testing"

	"hdsd/notify"
)

// TestNamesAreThoseOfTheirSubjects: a condition of a checker names a checker, in both formats.
func TestNamesAreThoseOfTheirSubjects(t *testing.T) {
	s := &sender{node: "hdsd-1"}
	for kind, noun := range map[notify.Kind]string{
		notify.CheckerDoubted: "checker", notify.CheckerSilent: "checker", notify.ReplicaLost: "replica", notify.SourceBroken: "source", notify.ShrinkageHeld: "source",
	} {
		notices := []notify.Notice{{Condition: notify.Condition{Key: notify.Key{Kind: kind, Name: "x"}}}}
		text, err := json.Marshal(s.delivery(notices, aNotice.Since))
		if labels := s.alerts(notices)[0].Labels; err != nil || labels[noun] != "x" || !strings.Contains(string(text), `"`+noun+`":"x"`) {
			t.Errorf("%s: labels %v; %s %v", kind, labels, text, err)
		}
	}
}
