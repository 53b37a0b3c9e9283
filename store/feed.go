package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"hdsd/health"
)

// Place is a place in the history: behind the transition of this recorded time. 0 is
// before all of them.
type Place uint64

// Recorded is a transition and the place behind it.
type Recorded struct {
	Place      Place
	Transition health.Transition
}

// Latest returns the recorded health of endpoints, nil for none, and the place that it includes.
func (h *history) Latest(endpoints []health.Endpoint) (held []*health.Verdict, place Place, err error) {
	held = make([]*health.Verdict, len(endpoints))
	err = h.db.view(func(tx *bolt.Tx) error {
		place = Place(newest(tx))
		past := h.past(tx)
		for i := range endpoints {
			if t, ok := past.latest(rowOf(&endpoints[i])); ok {
				held[i] = new(verdict(&t))
			}
		}
		return nil
	})
	return held, place, err
}

// After returns up to limit transitions behind a place, in recorded order. The error is
// ErrTooOld if some may be deleted or are in a gap.
func (h *history) After(place Place, limit int) ([]Recorded, error) {
	return h.after(place, limit, h.reaches)
}

// Kept is After without ErrTooOld: transitions behind the place may be missing.
func (h *history) Kept(place Place, limit int) ([]Recorded, error) {
	return h.after(place, limit, func(*bolt.Tx, Place) error { return nil })
}

func (h *history) after(place Place, limit int, allowed func(*bolt.Tx, Place) error) (found []Recorded, err error) {
	shared := names{}
	err = h.db.view(func(tx *bolt.Tx) error {
		rows := tx.Bucket(transitions).Cursor()
		if err := allowed(tx, place); err != nil {
			return err
		}
		dates := h.time.dates(tx)
		for k, v := rows.Seek(key(uint64(place) + 1)); k != nil && len(found) < limit; k, v = rows.Next() {
			t, ok := dates.open(k, v, shared)
			h.damage.unless(ok, transitions, k)
			if ok {
				found = append(found, Recorded{Place(number(k)), t})
			}
		}
		return nil
	})
	return found, err
}

// reaches returns ErrTooOld unless everything behind a place is still kept.
func (h *history) reaches(tx *bolt.Tx, place Place) error {
	t, ok := readTimeline(tx)
	if !ok {
		t = *h.time.timeline() // nothing was deleted since the start
	}
	if k, _ := tx.Bucket(transitions).Cursor().First(); uint64(place) < t.Pruned() && len(k) == 8 {
		return fmt.Errorf("%w: it begins at %s", ErrTooOld, timeOf(number(k)).Format(time.RFC3339))
	}
	if last, ok := lastGap(tx); ok && uint64(place) < last.to {
		return fmt.Errorf("%w: %s", ErrTooOld, &last.Gap)
	}
	return nil
}

// Token encodes a place, for this history only.
func (h *history) Token(place Place) string {
	return base64.RawURLEncoding.EncodeToString(append(key(uint64(place)), h.placeSum(place)...))
}

func (h *history) placeSum(place Place) []byte {
	sum := sha256.Sum256(append([]byte("place 1\x00"), key(uint64(place), h.created)...))
	return sum[:8]
}

// Place decodes a token. The error is ErrBadToken if the token is not of this history.
func (h *history) Place(token string) (Place, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != tokenSize {
		return 0, ErrBadToken
	}
	place := Place(number(b))
	if !bytes.Equal(b[8:], h.placeSum(place)) {
		return 0, ErrBadToken
	}
	_, latest, err := h.Latest(nil)
	if err == nil && place > latest {
		return 0, ErrBadToken // of transitions that a restore undid
	}
	return place, err
}
