package feed

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/source"
	"hdsd/source/sample"
)

func TestAProblemIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	l := problemLog{log: zerolog.New(&out)}
	logged := func(problems ...source.Problem) int {
		out.Reset()
		l.update(problems)
		return strings.Count(out.String(), `"event":"source_problem"`)
	}
	one := source.Problem{File: "clusters.yaml", Line: 3, Field: "name", Message: "is missing"}
	if n := logged(one); n != 1 || !strings.Contains(out.String(), "clusters.yaml:3: name: is missing") {
		t.Errorf("logged %d times: %s", n, out.String())
	}
	shifted, other := one, one
	shifted.Line, other.Field = 4, "type"
	if n := logged(shifted); n != 0 {
		t.Errorf("on another line it is logged again: %s", out.String())
	}
	if n := logged(shifted, other); n != 1 {
		t.Errorf("a second problem is logged %d times: %s", n, out.String())
	}
	if logged(); logged(one) != 1 {
		t.Error("what was put right and came back is not logged")
	}
}

// TestARaisedIntervalIsLoggedOnce for each version that changes it.
func TestARaisedIntervalIsLoggedOnce(t *testing.T) {
	var out bytes.Buffer
	rules := catalog.NewRules(&configv1.Config{Checkers: &configv1.Checkers{ProbeTargets: &configv1.ProbeTargets{MinInterval: durationpb.New(time.Hour)}}})
	first, second := catalog.Prepare(sample.Web("web", "10.0.0.1:80"), rules), catalog.Prepare(sample.Web("web", "10.0.0.2:80"), rules)
	for _, step := range []struct{ before, after *catalog.Cluster }{{nil, first}, {first, second}} {
		logChecks(zerolog.New(&out), step.before, step.after)
	}
	if n := strings.Count(out.String(), `"event":"interval_raised","cluster":"web"`); n != 1 || !strings.Contains(out.String(), "checkers probe every 1h0m0s") {
		t.Errorf("logged %d times: %s", n, out.String())
	}
}
