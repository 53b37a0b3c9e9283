package coordinator

import (
	"hdsd/log"
	"hdsd/store"
)

// readState reads the stored state in the background. The returned function waits for the result.
func readState(s *store.Store) func() (log.State, error) {
	done := make(chan struct{})
	var state log.State
	var err error
	go func() {
		defer close(done)
		state, err = s.State()
	}()
	return func() (log.State, error) {
		<-done
		return state, err
	}
}
