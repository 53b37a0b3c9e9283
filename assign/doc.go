// Package assign decides which checkers check which endpoints.
//
// It owns the plan: for each endpoint, the checkers that have a seat at it. A
// Planner takes changes of endpoints and checkers, and returns the least change to
// the plan. It is pure: no clock, goroutine, lock or log. One goroutine at a time
// may call it. It imports health, its internal packages and the standard library.
//
// # Guarantees
//
// For each endpoint, in order of weight:
//
//  1. Its checkers have the abilities it needs, reach it, are where its placement
//     allows, and are below their ceilings.
//  2. It has as many checkers as its redundancy asks for, or as many as there are.
//  3. They are placed as its Zones and Regions say. By default they are in distinct
//     zones, if there are enough. Zones of different regions are distinct.
//  4. One of them is in the endpoint's own zone, if that has a checker.
//  5. No checker has much more than its fair share (Options.Slack). Fair shares are
//     as even, relative to the checkers' weights, as rules 1 to 4 allow.
//
// A plan changes only where a rule asks for it:
//
//   - A checker that leaves moves its own checks and no others.
//   - A checker that joins takes at most its fair share.
//   - A checker that returns to its seats moves nothing, with one exception: if
//     ceilings forced a unit to be cut for a substitute, the parts may move.
//   - A checker sheds its excess once it exceeds its share by 1.15 times the slack.
//
// The same history gives the same plan and digest on every machine. The order
// inside a Change does not matter.
//
// No endpoint is dropped silently. A Diff lists endpoints that nobody checks, and
// Shortage returns how many checkers an endpoint lacks, and why. Where ceilings leave
// too little room, endpoints lack second and third checkers rather than first ones.
// The planner adds them as soon as there is room.
//
// # Seats
//
//   - A Lost checker keeps its seats. Endpoints with fewer than two live checkers
//     left (one, where the redundancy is one) get substitutes at once. These leave
//     when the lost checker joins again.
//   - A Held checker is lost, too, but gets no substitutes yet. It gets no new seats.
//   - A checker that leaves gives up its seats. Its substitutes get them, and the
//     planner fills the rest.
//   - A Doubted checker keeps its seats. Each of its endpoints gets a substitute, as
//     if the redundancy were higher by one.
//   - A Blind checker keeps its seats. It gets a new seat only where no other checker
//     can. An endpoint gets substitutes until its other live checkers outnumber the
//     blind ones.
//   - An endpoint of a Divided zone gets substitutes until it has two live checkers in
//     its own zone.
//
// A substitute that becomes doubted stays while a seat of the endpoint is doubted, but
// does not count. A substitute is in a zone without a live checker of the endpoint. It is in the
// endpoint's own zone only if that has room. Where ceilings leave no room for both,
// seats displace substitutes, and a checker sheds substitute work first. The stored
// plan has no substitutes.
//
// # After a start
//
// Restore gives the seats of the stored plan to checkers that are not live yet:
//
//	p.Restore(plan)
//	p.Apply(Change{Settling: true, Upsert: endpoints})      // take their stored seats
//	p.Apply(Change{Settling: true, Join: one that is back}) // as they come
//	p.Apply(Change{Leave: those that never came})           // the end of settling
//
// While Settling, the planner places nothing: otherwise the first checker back would
// get everything. Endpoints without a stored seat wait. The first Apply without
// Settling places all of them as one batch, so the order in which checkers came does
// not matter. Endpoints that are upserted later still get their stored seats.
//
// # Method
//
// Endpoints of one kind want the same class, redundancy, rate and placement. For
// each kind, a binary trie over the hashes of cluster and endpoint cuts its
// endpoints into leaves. Small clusters share a leaf, large ones have many. The
// endpoints of a leaf that are in one zone form a unit, and share one list of seats.
// A unit has at most about a twelfth of the mean load, and at most Options.Unit
// endpoints. Neither splitting a leaf nor joining leaves with equal seats moves a
// check.
//
// Units rank zones by weighted rendezvous hashing (highest random weight: Thaler and
// Ravishankar, "Using name-based mappings to increase hit rates", 1998), their own
// zone first. In a zone, the highest ranking checker with room gets the seat. All
// units of a leaf have the same ranking, so a cluster in all zones has hardly more
// than one checker in each. A checker has room up to its share plus the slack, as in
// consistent hashing with bounded loads (Mirrokni, Thorup and Zadimoghaddam, 2016).
// If no checker has room, the least loaded one gets the seat.
//
//   - Filling begins with the classes that the fewest checkers can serve.
//   - Newcomers take seats up to their own share. They first take units that rank
//     them higher, then units of checkers above their share.
//   - If many checkers join at once, as when a zone comes back, the planner tries a
//     plan from scratch. It takes that plan if it moves little more than the
//     newcomers' share.
//   - A checker above its bound sheds the units that rank it lowest. If all takers
//     are full, each hands something on, along a shortest chain to one with room.
//   - If no able checker has room below its ceiling for a unit, the unit displaces
//     units that more checkers may serve. If that fails, the planner cuts the unit in
//     two. Options.Looks bounds the search.
//
// # Parts
//
// Each type owns its fields; others use its methods. From the bottom up:
//
//   - zone.Table, quota.Table: numbers of zones; fair shares.
//   - fleet, classes, room: the checkers; the classes each can serve; its free room.
//   - kinds, endpoints, forest: which endpoints are in which unit.
//   - seats: the plan itself, and the changes of a step.
//   - tally, rankings, needs, picker: which checker is best for one unit.
//   - mover, repairer, squeezer, balancer, puller, rebuilder: they decide what moves,
//     in the order that work sets.
//   - agenda, journal, restored: units to look at; changes; the stored plan.
//
// The parts share the units: forest groups a unit's endpoints, seats gives it
// checkers, agenda and journal mark it, and all may read it.
//
// # Costs
//
// With E endpoints, C checkers, Z zones, redundancy R and L leaves (some 5 to 20
// times C/R):
//
//   - from scratch: O(E log E + L*C);
//   - a checker leaves or is doubted: O(C + its checks + its leaves*C/Z);
//   - a checker is lost: O(C + its units*R);
//   - a checker joins: O(L + C + its checks);
//   - an endpoint is added or removed: O(C + its leaf + the leaves of its kind).
//
// Each step computes the shares again: some 20 operations for each pair of kind and
// cohort. With several kinds or ceilings, this takes 3 to 24 rounds.
package assign
