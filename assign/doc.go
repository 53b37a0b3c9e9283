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
//     zones as far as there are zones. A zone is a region and a zone.
//  4. One of them is in the endpoint's own zone, if that has a checker.
//  5. No checker has much more than its fair share (Options.Slack). That is what it
//     has where loads are as even for their weights as rules 1 to 4 allow.
//
// A plan changes only where a rule asks for it:
//
//   - A checker that leaves moves its own checks and no others.
//   - A checker that joins takes at most its fair share.
//   - A checker that returns to its seats moves nothing. Ceilings are an exception:
//     units that were cut for a substitute may find a better place.
//   - A checker that comes to 1.15 times the slack above its share sheds the excess.
//
// The same history gives the same plan and digest on every machine. The order
// inside a Change does not matter.
//
// No endpoint is dropped silently. A Diff lists endpoints that nobody checks, and
// Shortage tells how many checkers an endpoint lacks, and why. Where ceilings leave
// too little room, second and third checkers are missing before first ones. All are
// made up for as soon as there is room.
//
// # Seats
//
//   - A Lost checker keeps its seats. Endpoints with fewer than two live checkers
//     left (one, where the redundancy is one) get substitutes at once. These leave
//     when the lost checker joins again.
//   - Leave gives seats up. Substitutes get the seats, and the planner fills the rest.
//   - A Doubted checker keeps its seats. Each of its endpoints gets a substitute, as
//     if its redundancy was one more.
//   - A Blind checker keeps its seats, and gets another only where nobody else can
//     have it. Where the blind are as many as other live checkers, substitutes come
//     until they are outnumbered.
//
// A substitute is in a zone without a live checker of the endpoint, in its own zone
// only if there is room. It yields to seats where ceilings leave no room for both,
// and a checker sheds it first. The stored plan has no substitutes.
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
// not matter. Endpoints that are upserted later still find their stored seats.
//
// # Method
//
// Endpoints of one kind want the same class, redundancy, rate and placement. For
// each kind, a binary trie over the hashes of cluster and endpoint cuts its
// endpoints into leaves. Small clusters share a leaf, large ones have many. The
// endpoints of a leaf that are in one zone are a unit, and share one list of seats.
// A unit has at most about a twelfth of the mean load, and at most Options.Unit
// endpoints. Splitting a leaf moves nothing; neither does joining two with the same
// seats.
//
// Units rank zones by weighted rendezvous hashing (highest random weight: Thaler and
// Ravishankar, "Using name-based mappings to increase hit rates", 1998), their own
// zone first. In a zone, the highest ranking checker with room gets the seat. All
// units of a leaf rank alike, so a cluster in all zones has hardly more than one
// checker in each. Room is bounded as in consistent hashing with bounded loads
// (Mirrokni, Thorup and Zadimoghaddam, 2016): a share, and the slack on top. If
// nobody has room, the least loaded checker gets the seat.
//
//   - Filling begins with the classes that the fewest checkers can serve.
//   - Newcomers pull the units that they win by rank, then units of those above
//     their share, up to their own share.
//   - If much joins at once, as when a zone comes back, the planner tries a plan from
//     scratch. It takes that plan if it moves little more than the newcomers' share.
//   - A checker above its bound sheds the units that rank it lowest. If all takers
//     are full, each hands something on, along a shortest chain to one with room.
//   - A unit that fits below no ceiling displaces units that more checkers may
//     serve. If that fails, it is cut in two. Options.Looks bounds the search.
//
// # Parts
//
// Each type owns its fields; others use its methods. From the bottom up:
//
//   - zone.Table, quota.Table: numbers of zones; fair shares.
//   - fleet, classes, room: who is there; who can serve what; what each has left.
//   - kinds, endpoints, forest: which endpoints are in which unit.
//   - seats: the plan itself, and what a step changes.
//   - tally, rankings, needs, picker: which checker is best for one unit.
//   - mover, repairer, squeezer, balancer, puller, rebuilder, joined by work: they
//     decide what moves.
//   - agenda, journal, restored: what to look at; what changed; the stored plan.
//
// The unit is shared: forest groups its endpoints, seats gives it checkers, agenda
// and journal mark it, and all may read it.
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
//   - an endpoint comes or goes: O(C + its leaf + the leaves of its kind).
//
// Shares are computed anew in each step: some 20 operations for each pair of kind and
// cohort. With several kinds or ceilings, this takes 3 to 24 rounds.
package assign
