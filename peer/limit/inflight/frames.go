package inflight

import "encoding/binary"

// The parts of HTTP/2 needed here (RFC 9113).
const (
	prefaceBytes     = 24
	frameHeaderBytes = 9

	typeData     = 0
	typeHeaders  = 1
	typeReset    = 3
	typeSettings = 4
	typeGoAway   = 7
	typeWindow   = 8

	settingBytes  = 6 // including two for its number
	settingWindow = 4 // SETTINGS_INITIAL_WINDOW_SIZE

	lastStreamBytes = 4 // of a GOAWAY, which begins with the last served stream

	flagEndStream = 0x1
	flagAck       = 0x1
	flagPadded    = 0x8
)

// frame is the head of a frame.
type frame struct {
	kind, flags byte
	stream      uint32
	size        int
}

// largest bounds the data of a frame, unless the receiver allows more. grpc does not.
const largest = 16 << 10

// scanner finds the frames in one direction of a connection. It reads the bytes in parts of any
// size, and keeps only heads. It validates nothing: grpc does.
type scanner struct {
	skip     int // bytes before the first frame
	head     [frameHeaderBytes]byte
	headSize int // of head
	frame    frame
	left     int // missing bytes of the frame
	padded   bool
	pad      int // bytes of padding at the end of a data frame

	// change, if not nil, is called for the parts of settings, updates of windows and GOAWAY,
	// with their offsets in the frame. It may change them.
	change func(f frame, offset int, part []byte)
}

// scan calls begin for each frame, and data for the parts of the content of data frames. data
// may change them. It returns the number of bytes used; on an error, that is fewer than given.
// The next scan continues behind them.
func (s *scanner) scan(b []byte, begin func(frame), data func(uint32, []byte) (int, error)) (used int, err error) {
	whole := len(b)
	for len(b) > 0 && err == nil {
		var n int
		n, err = s.step(b, begin, data)
		b = b[n:]
	}
	return whole - len(b), err
}

// step is a part of scan.
func (s *scanner) step(b []byte, begin func(frame), data func(uint32, []byte) (int, error)) (n int, err error) {
	switch content := s.left - s.pad; {
	case s.skip > 0:
		n = min(s.skip, len(b))
		s.skip -= n
	case s.left == 0:
		n = copy(s.head[s.headSize:], b)
		if s.headSize += n; s.headSize == frameHeaderBytes {
			s.begin(begin)
		}
	case s.padded:
		s.padded, s.pad, n = false, int(b[0]), 1
		s.left--
	case s.frame.kind == typeData && data != nil && content > 0:
		n, err = data(s.frame.stream, b[:min(content, len(b))])
		s.left -= n
	default:
		n = min(s.left, len(b))
		if s.change != nil && (s.frame.kind == typeSettings || s.frame.kind == typeWindow || s.frame.kind == typeGoAway) {
			s.change(s.frame, s.frame.size-s.left, b[:n])
		}
		s.left -= n
	}
	return n, err
}

// isBoundary reports whether the next byte begins a frame.
func (s *scanner) isBoundary() bool { return s.skip == 0 && s.left == 0 && s.headSize == 0 }

// join is scan for a caller that passes the bytes on. It merges successive complete data frames
// of a stream into one, which makes many small messages cheaper to read. It also returns the
// number of bytes left.
func (s *scanner) join(b []byte, begin func(frame), data func(uint32, []byte) (int, error)) (used, kept int, err error) {
	var joined frame // a frame that can grow; its head is at b[headStart:]
	headStart := 0
	for used < len(b) && err == nil {
		start, whole := used, s.isBoundary()
		for n := 0; used < len(b) && err == nil && (used == start || !s.isBoundary()); used += n {
			n, err = s.step(b[used:], begin, data)
		}
		f := s.frame
		switch whole = whole && err == nil && s.isBoundary() && f.kind == typeData && f.flags == 0; {
		case whole && joined.size > 0 && joined.stream == f.stream && joined.size+f.size <= largest:
			joined.size += f.size
			b[headStart], b[headStart+1], b[headStart+2] = byte(joined.size>>16), byte(joined.size>>8), byte(joined.size)
			start += frameHeaderBytes
		case whole:
			joined, headStart = f, kept
		default:
			joined = frame{}
		}
		if kept != start {
			copy(b[kept:], b[start:used])
		}
		kept += used - start
	}
	return used, kept, err
}

func (s *scanner) begin(begin func(frame)) {
	s.headSize = 0
	s.frame = frame{
		size: int(s.head[0])<<16 | int(s.head[1])<<8 | int(s.head[2]),
		kind: s.head[3], flags: s.head[4], stream: binary.BigEndian.Uint32(s.head[5:]) &^ (1 << 31),
	}
	s.left = s.frame.size
	s.padded, s.pad = s.frame.kind == typeData && s.frame.flags&flagPadded != 0, 0
	begin(s.frame)
}
