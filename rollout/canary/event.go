package canary

// Kind is the outcome of a trial.
type Kind uint8

// The kinds of event.
const (
	Started     Kind = iota // a checker became the canary of a cluster
	Proven                  // others of its build may have the cluster
	NotAccepted             // the canary does not accept its specifier
	Lost                    // the canary was lost; the cluster is suspect
	Blocked                 // the canary was lost again; no checker tries the cluster any more
	Withdrawn               // it ended without a result
)

// Event is a change of a trial.
type Event struct {
	Kind    Kind
	Cluster string
	Checker string
}

// Events returns the events since the last call, in order.
func (l *Ledger) Events() []Event {
	events := l.events
	l.events = nil
	return events
}

// events are the events since the last call of Events.
type events []Event

func (e *events) note(kind Kind, t *trial) {
	*e = append(*e, Event{kind, t.cluster.name, t.checker.id})
}
