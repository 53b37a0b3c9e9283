package zone_test

import (
	"fmt"
	"testing"

	"hdsd/assign/internal/zone"
	"hdsd/health"
)

func locality(region, z int) health.Locality {
	return health.Locality{Region: fmt.Sprint("r", region), Zone: fmt.Sprint("z", z), SubZone: fmt.Sprint(z)}
}

func TestNumber(t *testing.T) {
	table, numbers := zone.NewTable(), map[int32]health.Locality{}
	for i := range 300 {
		l := locality(i%3, i)
		z := table.Number(l)
		if other, ok := numbers[z]; ok {
			t.Errorf("%v and %v are both zone %d", l, other, z)
		}
		numbers[z] = l
		table.Occupy(z, 1)
	}
	table.Forget()
	for z, l := range numbers {
		if got := table.Number(l); got != z {
			t.Errorf("%v is zone %d, and was %d", l, got, z)
		}
		first := table.Number(health.Locality{Region: l.Region, Zone: "first"})
		if table.Region(z) != table.Region(first) {
			t.Errorf("two zones of %s are in different regions", l.Region)
		}
	}
	if table.Regions() != 3 {
		t.Errorf("%d regions, want 3", table.Regions())
	}
}

// TestForget frees the numbers of zones and regions where nobody is.
func TestForget(t *testing.T) {
	table := zone.NewTable()
	stays := table.Number(locality(0, 0))
	table.Occupy(stays, 1)
	hash := table.Hash(stays)
	for i := range 1000 {
		a, b := table.Number(locality(i, i)), table.Number(locality(i+1, i+1))
		table.Occupy(a, 2)
		table.Occupy(b, 1)
		table.Forget()
		if got := table.Number(locality(i, i)); got != a {
			t.Fatalf("zone %d is %d while somebody is there", a, got)
		}
		table.Occupy(a, -2)
		table.Occupy(b, -1)
		table.Occupy(zone.None, 1)
		table.Forget()
	}
	if table.Len() > 4 || table.Regions() > 4 {
		t.Errorf("room for %d zones and %d regions, where there is 1", table.Len(), table.Regions())
	}
	if got := table.Number(locality(0, 0)); got != stays || table.Hash(got) != hash {
		t.Errorf("zone %d became %d", stays, got)
	}
}

// TestCompare does not depend on numbers.
func TestCompare(t *testing.T) {
	forth, back := zone.NewTable(), zone.NewTable()
	for i := range 20 {
		forth.Number(locality(0, i))
		back.Number(locality(0, 19-i))
	}
	for i := range 20 {
		for j := range 20 {
			a := forth.Compare(forth.Number(locality(0, i)), forth.Number(locality(0, j)))
			b := back.Compare(back.Number(locality(0, i)), back.Number(locality(0, j)))
			if a != b || (a == 0) != (i == j) {
				t.Errorf("%d and %d compare as %d and %d", i, j, a, b)
			}
		}
		if forth.Compare(zone.None, int32(i)) >= 0 || forth.Compare(int32(i), zone.None) <= 0 {
			t.Error("None is not first")
		}
	}
}
