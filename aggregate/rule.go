package aggregate

import "hdsd/health"

// outcome says how a rule came to its status.
type outcome uint8

const (
	decided    outcome = iota
	tied               // as many up as down: the last verdict holds
	outwaited          // those who are awaited could turn it round: the last verdict holds
	unobserved         // no vote counts: the last verdict holds
)

// majority is the rule that more than half of the votes that count decide.
//
// It takes those who are awaited for opponents, so that what the first to
// report say after a start stands only when it will stand in the end: without
// that, two of three checkers that see an endpoint down would lose to the
// third for as long as they warm up. For the same reason a verdict does not
// change its name (UNHEALTHY to TIMEOUT) while somebody is awaited.
func majority(t *tally, last health.Status) (health.Status, outcome) {
	won, lost, same := t.up, t.down, last.Up()
	if t.down > t.up {
		won, lost, same = t.down, t.up, last.Down()
	}
	switch {
	case won == 0:
		return last, unobserved
	case won == lost:
		return last, tied
	case same && t.awaited > 0:
		return last, decided
	case !same && won <= lost+t.awaited:
		return last, outwaited
	default:
		return t.name(), decided
	}
}

// name is the status with the most votes on the side that won; of equals the
// worse.
func (t *tally) name() health.Status {
	worse, better := health.Degraded, health.Healthy
	if t.down > t.up {
		worse, better = health.Unhealthy, health.Timeout
	}
	if t.votes[worse] >= t.votes[better] {
		return worse
	}
	return better
}
