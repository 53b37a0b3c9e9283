package coordinator

import (
	"maps"
	"slices"
	"strings"

	"hdsd/notify"
)

// openConditions are the conditions that are notified and have not ended. The replica that leads keeps them over its
// terms.
type openConditions struct {
	all     map[notify.Key]bool
	renewed map[notify.Key]bool // those that were added again since renew; nil: all count
}

// add adds changes, and returns them. If all present conditions are known, the end of those that were not added again since
// renew follows.
func (o *openConditions) add(changes []notify.Change, complete bool) []notify.Change {
	for i := range changes {
		key := changes[i].Key
		if changes[i].Ended {
			delete(o.all, key)
			continue
		}
		if o.all == nil {
			o.all = map[notify.Key]bool{}
		}
		if o.all[key] = true; o.renewed != nil {
			o.renewed[key] = true
		}
	}
	if !complete || o.renewed == nil {
		return changes
	}
	renewed := o.renewed
	o.renewed = nil
	return append(changes, o.end(func(key notify.Key) bool { return !renewed[key] })...)
}

// renew begins anew: conditions that are not added again have ended.
func (o *openConditions) renew() { o.renewed = map[notify.Key]bool{} }

// endAll ends all conditions.
func (o *openConditions) endAll() []notify.Change {
	return o.end(func(notify.Key) bool { return true })
}

func (o *openConditions) end(has func(notify.Key) bool) (changes []notify.Change) {
	keys := slices.SortedFunc(maps.Keys(o.all), func(a, b notify.Key) int {
		return strings.Compare(string(a.Kind)+" "+a.Name, string(b.Kind)+" "+b.Name)
	})
	for _, key := range keys {
		if has(key) {
			delete(o.all, key)
			changes = append(changes, notify.Change{Condition: notify.Condition{Key: key}, Ended: true})
		}
	}
	return changes
}
