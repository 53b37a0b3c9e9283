package assign

import (
	"encoding/binary"
	"slices"
)

// seeds numbers the lists of seats that endpoints bring: equal lists have one
// number.
type seeds struct {
	lists  [][2][]int32
	number map[string]int32
	buffer []byte
}

func (s *seeds) intern(seats, extra []int32) int32 {
	if len(seats)+len(extra) == 0 {
		return none
	}
	s.buffer = s.buffer[:0]
	for _, list := range [2][]int32{seats, extra} {
		s.buffer = binary.LittleEndian.AppendUint32(s.buffer, uint32(len(list)))
		for _, slot := range list {
			s.buffer = binary.LittleEndian.AppendUint32(s.buffer, uint32(slot))
		}
	}
	if n, ok := s.number[string(s.buffer)]; ok {
		return n
	}
	if s.number == nil {
		s.number = map[string]int32{}
	}
	n := int32(len(s.lists))
	s.lists = append(s.lists, [2][]int32{slices.Clone(seats), slices.Clone(extra)})
	s.number[string(s.buffer)] = n
	return n
}
