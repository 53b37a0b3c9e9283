package batch

import "hdsd/log"

// These are the forms of a frame, in its first byte.
const (
	firstFrame = 1 << iota // a batch begins
	lastFrame              // the batch ends
)

// Frames returns an encoded batch in frames of at most the given bytes, which must be at least 2.
func Frames(batch []byte, limit int) (frames [][]byte) {
	for first := true; first || len(batch) > 0; first = false {
		size := min(len(batch), limit-1)
		var form byte
		if first {
			form |= firstFrame
		}
		if size == len(batch) {
			form |= lastFrame
		}
		frames = append(frames, append([]byte{form}, batch[:size]...))
		batch = batch[size:]
	}
	return frames
}

// Joiner joins frames. Its zero value is ready.
type Joiner struct {
	part   []byte // of an unfinished batch
	joined bool   // part has the first frame
}

// Add adds the next frame. It returns the entries of a batch after the last frame, and nil before. It
// returns ErrDamaged or ErrNewer for a batch that cannot be read.
func (j *Joiner) Add(frame []byte) ([]*log.Entry, error) {
	if len(frame) == 0 || frame[0]&^(firstFrame|lastFrame) != 0 {
		return nil, ErrDamaged
	}
	if frame[0]&firstFrame != 0 {
		j.part, j.joined = nil, true
	}
	if !j.joined || len(j.part)+len(frame) > MaxBytes {
		return nil, ErrDamaged
	}
	if frame[0] == firstFrame|lastFrame {
		*j = Joiner{}
		return Decode(frame[1:])
	}
	j.part = append(j.part, frame[1:]...)
	if frame[0]&lastFrame == 0 {
		return nil, nil
	}
	batch := j.part
	*j = Joiner{}
	return Decode(batch)
}

// Unfinished reports whether the batch of the latest frame lacks frames. A cursor must not
// point behind such a frame.
func (j *Joiner) Unfinished() bool { return j.joined }
