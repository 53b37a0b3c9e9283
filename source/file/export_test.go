package file

import "time"

// Hasten makes watching as quick as a test wants it.
func (s *Source) Hasten() *Source {
	s.settle, s.retry = 2*time.Millisecond, 2*time.Millisecond
	return s
}
