package health

import "fmt"

// Status is the health of an endpoint, with the values and names of
// envoy.config.core.v3.HealthStatus.
type Status uint8

// The statuses.
const (
	Unknown   Status = 0
	Healthy   Status = 1
	Unhealthy Status = 2
	Draining  Status = 3
	Timeout   Status = 4
	Degraded  Status = 5
)

var statusNames = [...]string{"UNKNOWN", "HEALTHY", "UNHEALTHY", "DRAINING", "TIMEOUT", "DEGRADED"}

// String returns the name that Envoy uses.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("STATUS_%d", uint8(s))
}

// Valid reports whether s is one of the statuses above.
func (s Status) Valid() bool { return int(s) < len(statusNames) }

// Up reports whether an endpoint with this status can take traffic.
func (s Status) Up() bool { return s == Healthy || s == Degraded }

// Down reports whether an endpoint with this status cannot take traffic.
func (s Status) Down() bool { return s == Unhealthy || s == Timeout }

// Worse returns the worse of two statuses. The order, from the worst, is UNHEALTHY,
// TIMEOUT, DRAINING, DEGRADED, UNKNOWN, HEALTHY.
func Worse(a, b Status) Status {
	if badness(a) >= badness(b) {
		return a
	}
	return b
}

func badness(s Status) int {
	switch s {
	case Healthy:
		return 0
	case Unknown:
		return 1
	case Degraded:
		return 2
	case Draining:
		return 3
	case Timeout:
		return 4
	default:
		return 5
	}
}
