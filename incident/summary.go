package incident

import (
	"fmt"
	"time"

	"hdsd/health"
)

// Summary describes the incident in one sentence.
func (i *Incident) Summary() string {
	subject := i.affected()
	if began := map[Cause]string{
		Operator: "an operator's override: ", Network: "a path to the zone was cut: ", Checkers: "checkers that are doubted said so: ",
	}[i.Cause]; began != "" {
		subject = began + subject
	}
	if i.End.IsZero() {
		return fmt.Sprintf("%s went down, %d still %s, since %s", subject, i.Down, isAre(i.Down), i.Start.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("%s went down; over after %v", subject, i.End.Sub(i.Start).Round(time.Millisecond))
}

// affected describes what went down.
func (i *Incident) affected() string {
	owner := health.VersionTitle(i.Clusters[0], i.Version)
	if n := len(i.Clusters); n > 1 {
		owner = fmt.Sprintf("%d clusters", n)
	}
	place := ""
	switch n := len(i.Zones); {
	case n == 1:
		place = " in zone " + i.Zones[0]
	case n > 1:
		place = fmt.Sprintf(" in %d zones", n)
	}
	if i.Endpoints == 1 {
		return fmt.Sprintf("%s of %s%s", i.First.Endpoint.Address, owner, place)
	}
	return fmt.Sprintf("%d endpoints of %s%s", i.Endpoints, owner, place)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
