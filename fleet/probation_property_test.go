package fleet

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hdsd/health"
)

// shrinking has rapid look for a shorter way to an error.
type shrinking struct {
	testing.TB
	rt *rapid.T
}

// Errorf implements testing.TB.
func (s shrinking) Errorf(format string, values ...any) { s.rt.Fatalf(format, values...) }

// TestNobodyGetsAroundProbation: whatever happens, a stranger that contradicts everybody is
// on probation for as long as somebody is established, is there and reports, and probation
// is on.
func TestNobodyGetsAroundProbation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t, options(), 0, 30)
		l.TB = shrinking{t, rt}
		l.SetProbation(l.now, probationTime)
		honest, strangers := numbered(0, 4), []string{"s0", "s1", "s2"}
		l.say(Same, honest...)
		l.say(Opposite, strangers...)
		guarded := map[string]bool{} // strangers that came while somebody watched, and since
		watched := func() bool {
			for _, id := range honest {
				if k := l.checkers[id]; l.probation.lasts > 0 && k != nil && k.connected && k.newcomer == nil && l.Fleet.silent[id] == nil {
					return true
				}
			}
			return false
		}
		check := func() {
			present, standIns, late := 0, 0, 0
			for _, k := range l.checkers {
				present += boolToInt(k.connected && k.newcomer == nil)
			}
			for _, e := range l.probation.roll.records {
				standIns += boolToInt(!e.StandIn.IsZero())
				late += boolToInt(e.Founder)
			}
			if present != l.probation.present || standIns != l.probation.roll.standIns || late != l.probation.roll.late {
				rt.Fatalf("%d established checkers are there, %d stand in, and %d are late; the fleet counts %d, %d and %d",
					present, standIns, late, l.probation.present, l.probation.roll.standIns, l.probation.roll.late)
			}
			is := watched()
			for id := range guarded {
				if k := l.checkers[id]; !is || k == nil || !k.connected {
					delete(guarded, id)
				} else if !k.onProbation() {
					rt.Fatalf("%s is not on probation any more", id)
				}
			}
		}
		someone := rapid.SampledFrom(append(strangers, honest...))
		rt.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"joins": func(rt *rapid.T) {
				id := someone.Draw(rt, "id")
				if id[0] == 'c' {
					delete(l.silent, id)
					l.join(id)
					return
				}
				as := rapid.SampledFrom([]string{id, rapid.SampledFrom(honest).Draw(rt, "under the id of")}).Draw(rt, "as")
				_, known := l.probation.roll.records[as] // it came with the first
				l.do(l.Connect(l.now, health.Checker{ID: as, Identity: "stranger", Locality: health.Locality{Region: "r", Zone: "1"}}))
				delete(l.silent, as)
				if as == id && !known && watched() {
					guarded[id] = true
				}
				if as != id { // the owner comes back
					l.lose(as)
					l.join(as)
				}
			},
			"leaves":  func(rt *rapid.T) { l.lose(someone.Draw(rt, "id")) },
			"is mute": func(rt *rapid.T) { l.hush(someone.Draw(rt, "id")) },
			"speaks":  func(rt *rapid.T) { l.speak(someone.Draw(rt, "id")) },
			"is switched": func(rt *rapid.T) {
				l.SetProbation(l.now, rapid.SampledFrom([]time.Duration{0, probationTime}).Draw(rt, "lasts"))
				l.pass(report / 2) // longer than plans are apart
			},
			"a while passes": func(rt *rapid.T) {
				for range rapid.SampledFrom([]int{1, 4, 10, 40}).Draw(rt, "reports") {
					l.pass(report)
					check()
				}
			},
			"restarts": func(*rapid.T) {
				l.restart()
				clear(guarded)
			},
		})
	})
}
