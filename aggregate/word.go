package aggregate

// OperatorTrust is what an operator says of a checker.
type OperatorTrust uint8

// Words.
const (
	AutomaticTrust OperatorTrust = iota // it is believed unless its peers contradict it
	Distrusted                          // none of its votes counts
	Trusted                             // it is not doubted, whatever its peers say; paths from its zone may be
)

// word is one with what is said about it.
type word struct {
	OperatorTrust
	reason string
}

func (w word) text() string { return "distrusted by an operator: " + w.reason }

// SetTrust has an operator's word hold for a checker from now on, whether it is
// there or not. The reason is shown where its votes do not count.
func (a *Aggregator) SetTrust(checker string, w OperatorTrust, reason string) {
	if w == AutomaticTrust {
		delete(a.words, checker)
	} else {
		if a.words == nil {
			a.words = map[string]word{}
		}
		a.words[checker] = word{w, reason}
	}
	c, ok := a.checkers.ids[checker]
	if !ok {
		return
	}
	x := &a.checkers.all[c]
	if x.word = w; w == Trusted {
		a.sees(c, "an operator trusts it")
	}
	for class := range x.classes() {
		at := station{c, uint32(class)}
		if x.in(uint32(class)).record.doubted && w == Trusted {
			a.doubtChecker(at, false)
		}
		a.touch(at)
	}
	for _, v := range x.votes {
		a.compareAnew(v.Endpoint)
	}
}

// internChecker gives a checker's number; an operator's word holds for it also
// when it comes anew.
func (a *Aggregator) internChecker(name string) uint32 {
	c := a.checkers.intern(name)
	a.checkers.all[c].word = a.words[name].OperatorTrust
	return c
}

// release forgets a checker that is gone and has no seat, and with it the doubt
// of it.
func (a *Aggregator) release(c uint32) {
	x := &a.checkers.all[c]
	if x.here || len(x.votes) > 0 {
		return
	}
	if x.doubts() > 0 {
		a.effects.Doubts = append(a.effects.Doubts, DoubtChange{Checker: x.name, Reason: "it is gone"})
	}
	a.sees(c, "it is gone")
	a.zones.leave(x.zone)
	a.checkers.release(c)
	a.stirred = true
}
