package coordinator

import (
	"hdsd/store"
)

// readState reads the stored state in the background. The returned function waits for the result.
func readState(s *store.Store) func() (store.State, error) {
	done := make(chan struct{})
	var state store.State
	var err error
	go func() {
		defer close(done)
		state, err = s.State()
	}()
	return func() (store.State, error) {
		<-done
		return state, err
	}
}
