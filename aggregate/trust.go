package aggregate

// OperatorTrust is an operator's trust in a checker. It overrides the votes of the checker's
// peers.
type OperatorTrust uint8

// The kinds of trust.
const (
	AutomaticTrust OperatorTrust = iota // believed unless its peers contradict it
	Distrusted                          // none of its votes counts
	Trusted                             // never doubted itself; paths from its zone may be
)

// trusts holds the operators' trust by checker, known or not.
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

// get returns the operator's trust in a checker.
func (t trusts) get(checker string) OperatorTrust { return t[checker].trust }

// reason returns the reason why the votes of a distrusted checker do not count.
func (t trusts) reason(checker string) string {
	return "distrusted by an operator: " + t[checker].reason
}
