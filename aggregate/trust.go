package aggregate

// OperatorTrust is what an operator says of a checker. It stands above what its
// peers say.
type OperatorTrust uint8

// The kinds of trust.
const (
	AutomaticTrust OperatorTrust = iota // it is believed unless its peers contradict it
	Distrusted                          // none of its votes counts
	Trusted                             // it is never doubted; paths from its zone may be
)

// trusts holds what operators said, by checker, whether it is there or not.
type trusts map[string]statedTrust

type statedTrust struct {
	trust  OperatorTrust
	reason string
}

func (t trusts) set(checker string, trust OperatorTrust, reason string) {
	if trust == AutomaticTrust {
		delete(t, checker)
	} else {
		t[checker] = statedTrust{trust, reason}
	}
}

// of returns the trust in a checker.
func (t trusts) of(checker string) OperatorTrust { return t[checker].trust }

// reason says why the votes of a distrusted checker do not count.
func (t trusts) reason(checker string) string {
	return "distrusted by an operator: " + t[checker].reason
}
