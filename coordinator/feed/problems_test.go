package feed

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"hdsd/source"
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
