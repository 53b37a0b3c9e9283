package coordinator

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/health"
)

func TestTransitionLogIsLimited(t *testing.T) {
	var out bytes.Buffer
	l := newTransitionLog(zerolog.New(&out), nil)
	const all = 5 * maxTransitionsLogged
	for range all {
		l.write(&health.Transition{Endpoint: keyOf("web", address1), To: health.Unhealthy})
	}
	now := time.Now()
	l.logOmitted(now)
	l.logOmitted(now)
	lines := strings.Count(out.String(), `"event":"transition"`)
	if lines < maxTransitionsLogged || lines >= all { // two bursts where a second ends between
		t.Errorf("%d of %d transitions are logged", lines, all)
	}
	if omitted := strings.Count(out.String(), `"event":"transitions_not_logged"`); omitted != 1 {
		t.Errorf("%d lines say that some were omitted", omitted)
	}
	l.omitted.count = 3
	l.logOmitted(now.Add(time.Second / 2))
	if strings.Contains(out.String(), `"count":3`) {
		t.Error("more than one line a second says that some were omitted")
	}
	l.logOmitted(now.Add(time.Second))
	if !strings.Contains(out.String(), `"count":3`) {
		t.Error("no line says how many were omitted later")
	}
}

// TestTransitionsAreLoggedWithLocality covers one address in two localities, which are two endpoints.
func TestTransitionsAreLoggedWithLocality(t *testing.T) {
	var out bytes.Buffer
	l := newTransitionLog(zerolog.New(&out), nil)
	for _, zone := range []string{"a", "b"} {
		l.write(&health.Transition{Endpoint: health.Endpoint{
			Cluster: "web", Address: address1, Locality: health.Locality{Region: "eu", Zone: zone, SubZone: "rack1"},
		}, To: health.Unhealthy})
	}
	for _, zone := range []string{"a", "b"} {
		if want := `"region":"eu","zone":"` + zone + `","sub_zone":"rack1"`; strings.Count(out.String(), want) != 1 {
			t.Errorf("the log lacks %s: %s", want, out.String())
		}
	}
}
