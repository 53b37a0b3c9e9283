package share_test

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(10, 8)
		a, b, c := mustTake(t, p, "a", 7, nil), mustTake(t, p, "b", 2, nil), mustTake(t, p, "c", 0, nil)
		start := time.Now()
		took := make(chan time.Duration, 2)
		go func() {
			if err := c.Wait(5, time.Minute); err != nil {
				t.Error(err)
			}
			took <- time.Since(start)
		}()
		synctest.Wait()
		go func() { // waits for less, but came later; it is served first because it fits
			if err := b.Wait(2, time.Minute); err != nil {
				t.Error(err)
			}
			took <- time.Since(start)
		}()
		time.Sleep(time.Second)
		if err := a.Add(-2); err != nil {
			t.Fatal(err)
		}
		if got := <-took; got != time.Second {
			t.Errorf("the small one waited for %v", got)
		}
		time.Sleep(time.Second)
		a.Release()
		if got := <-took; got != 2*time.Second {
			t.Errorf("the large one waited for %v", got)
		}
		if c.Amount() != 5 || b.Amount() != 4 {
			t.Errorf("%d and %d", c.Amount(), b.Amount())
		}
	})
}

func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(10, 8)
		mustTake(t, p, "a", 7, nil)
		b := mustTake(t, p, "b", 3, nil)
		start := time.Now()
		refused(t, b.Wait(5, time.Minute), "limits.max_streams", "b")
		if got := time.Since(start); got != time.Minute {
			t.Errorf("it waited for %v", got)
		}
		for _, impossible := range []int64{9, 11} {
			if err := b.Wait(impossible, time.Minute); err == nil || time.Since(start) != time.Minute {
				t.Errorf("%d: %v after %v", impossible, err, time.Since(start))
			}
		}
		if b.Try(1) || !b.Try(-1) || !b.Try(1) {
			t.Error("Try takes what is not free, or not what is")
		}
		ended := make(chan error)
		go func() { ended <- b.Wait(1, time.Minute) }()
		synctest.Wait()
		b.Release()
		if err := <-ended; err == nil || time.Since(start) != time.Minute {
			t.Errorf("a lease that is released while it waits: %v", err)
		}
		if b.Try(1) {
			t.Error("a released lease grows")
		}
		if got := p.Usage(); got.Taken != 7 {
			t.Errorf("%+v", got)
		}
	})
}
