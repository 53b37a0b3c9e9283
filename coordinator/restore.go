package coordinator

import (
	"hdsd/store"
)

// readState reads what is stored while a start does something else. The returned function waits for
// the result.
func readState(from *store.Store) func() (store.State, error) {
	read := make(chan struct{})
	var state store.State
	var err error
	go func() {
		defer close(read)
		state, err = from.State()
	}()
	return func() (store.State, error) {
		<-read
		return state, err
	}
}
