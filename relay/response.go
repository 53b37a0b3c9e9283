package relay

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/relay/message"
)

// response makes a response for the client from one of the control plane.
func (st *stream) response(ctx context.Context, m arrival) (*encoded, error) {
	k, relayed := kindOf(m.typeURL)
	if st.method.loads || !relayed && len(m.wire) <= largeMessage {
		return &encoded{[][]byte{m.wire}, m.place}, nil
	}
	end, err := st.turn(len(m.wire))
	if err != nil {
		return nil, err
	}
	if !relayed {
		defer end()
		return st.encode(message.KeepResponse(m.wire), m.place)
	}
	r, err := message.ParseResponse(st.method.delta, m.wire)
	if err != nil {
		end()
		return nil, undecodable(err)
	}
	items, moment, err := st.acquire(k, r)
	end()
	defer st.server.stock.release(items...)
	if err != nil {
		return nil, undecodable(err)
	}
	waiting, cancel := context.WithTimeout(ctx, st.server.options.LearnTimeout)
	defer cancel()
	st.server.stock.await(waiting, moment)
	if end, err = st.turn(len(m.wire)); err != nil {
		return nil, err
	}
	defer end()
	d, err := st.draft(k, r, items, m.wire)
	if err != nil {
		return nil, undecodable(err)
	}
	return st.encode(d, m.place)
}

// undecodable is the error of a response that cannot be decoded.
func undecodable(err error) error {
	return status.Errorf(codes.Unavailable, "a response of the control plane cannot be decoded: %v", err)
}

// draft makes a response for the client from a response of the control plane and its items.
func (st *stream) draft(k kind, r *message.Response, items []*item, wire []byte) (*message.Draft, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	d, warms, err := st.ledger(k).response(st.server, r, items, wire)
	if len(warms) > 0 {
		st.warm(warms)
		st.wakeUp()
	}
	return d, err
}

// warm has assignments go out again, since changed clusters wait for them: an Envoy uses a changed cluster
// once it has the assignment again, and withholds its answer until then. An Envoy with a stream for each
// assignment opens a new stream instead. The caller holds mu.
func (st *stream) warm(names []string) {
	if st.method.typeURL != "" {
		return
	}
	for _, name := range names {
		st.ledger(assignments).setDirty(name, true)
	}
}

// acquire puts the resources of a response into the stock, for each name the last one. The response waits
// for the moment, unless that is 0.
func (st *stream) acquire(k kind, r *message.Response) (items []*item, moment uint64, err error) {
	items = make([]*item, len(r.Resources))
	last := make(map[string]int, min(len(items), 1<<12)) // empty ones may be millions
	fresh, latest := 0, uint64(0)
	for n, wire := range r.Resources {
		var arrival uint64
		if items[n], arrival, err = st.server.stock.acquire(k, st.method.delta, wire); err != nil {
			return items, 0, err
		}
		if items[n] == nil {
			continue
		}
		name := items[n].body.name
		if index, twice := last[name]; twice { // with many of a name, each search in the stock would take longer
			st.server.stock.release(items[index])
			items[index] = nil
		}
		last[name] = n
		if arrival > 0 {
			fresh, latest = fresh+1, max(latest, arrival)
		}
		if arrival > moment && st.server.awaits(items[n].body) {
			moment = arrival
		}
	}
	if fresh <= fewResources {
		moment = latest
	}
	return items, moment, nil
}
