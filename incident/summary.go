package incident

import (
	"fmt"
	"time"
)

// Summary says in one sentence what happened.
func (i *Incident) Summary() string {
	what := i.affected()
	if began := map[Cause]string{
		Operator: "an operator's override: ", Network: "a path to the zone was cut: ", Checkers: "checkers that are doubted said so: ",
	}[i.Cause]; began != "" {
		what = began + what
	}
	if i.End.IsZero() {
		return fmt.Sprintf("%s went down, %d still %s, since %s", what, i.Down, is(i.Down), i.Start.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s went down; over after %v", what, i.End.Sub(i.Start).Round(time.Millisecond))
}

// affected says what went down.
func (i *Incident) affected() string {
	of := i.First.Endpoint.Cluster
	if n := len(i.Clusters); n > 1 {
		of = fmt.Sprintf("%d clusters", n)
	}
	where := ""
	switch n := len(i.Zones); {
	case n == 1:
		where = " in zone " + i.Zones[0]
	case n > 1:
		where = fmt.Sprintf(" in %d zones", n)
	}
	if i.Endpoints == 1 {
		return fmt.Sprintf("%s of %s%s", i.First.Endpoint.Address, of, where)
	}
	return fmt.Sprintf("%d endpoints of %s%s", i.Endpoints, of, where)
}

func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
