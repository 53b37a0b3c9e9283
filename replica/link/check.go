package link

import (
	"fmt"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/types/known/timestamppb"

	replicav1 "hdsd/gen/hdsd/replica/v1"
)

// maxOrders is the largest number of orders that a replica has at a time.
const maxOrders = 1024

// checkReport refuses a report of a process with values that hdsd could not show to anybody. Orders come to be in the
// log, and so in the answers of all replicas. It also refuses orders of other processes, whose own would not count then.
func checkReport(r *replicav1.Report, process uint64) error {
	if count := len(r.GetOrders()); count > maxOrders {
		return fmt.Errorf("%d orders, more than %d", count, maxOrders)
	}
	for i, s := range r.GetSessions() {
		if !utf8.ValidString(s.GetChecker()) {
			return fmt.Errorf("session %d of a report: %.200q is not UTF-8", i, s.GetChecker())
		}
		if err := checkValues(s.GetNode()); err != nil {
			return fmt.Errorf("session %d of a report: %w", i, err)
		}
	}
	if err := checkValues(r.GetClusters()); err != nil {
		return fmt.Errorf("the clusters of a report: %w", err)
	}
	for i, o := range r.GetOrders() {
		if kind := o.GetAnnotate().GetKind(); kind < 0 || kind > math.MaxUint8 {
			return fmt.Errorf("order %d of a report: an event of kind %d", i, kind)
		}
		if o.GetId().GetProcess() != process {
			return fmt.Errorf("order %d of a report: it is of another process", i)
		}
		if err := checkValues(o); err != nil {
			return fmt.Errorf("order %d of a report: %w", i, err)
		}
	}
	return nil
}

// checkValues refuses texts that are not UTF-8, and times that RFC 3339 does not have.
func checkValues(m proto.Message) error {
	return protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		switch value := p.Index(-1).Value.Interface().(type) {
		case string:
			if !utf8.ValidString(value) {
				return fmt.Errorf("%.200q is not UTF-8", value)
			}
		case interface{ Interface() proto.Message }:
			if t, ok := value.Interface().(*timestamppb.Timestamp); ok {
				return t.CheckValid()
			}
		}
		return nil
	})
}
