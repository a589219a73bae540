// SPDX-License-Identifier: Apache-2.0

package btfc

import "slices"

// orderAtOnce is how many distinct sketches Order compares with each other.
const orderAtOnce = 256

// Order returns the numbers of the sketches in a good order to add their kernels: of up to orderAtOnce distinct ones, each is as much
// as possible like one before it or in the file. The first one of a new file is most like all others. Kernels without a sketch come
// last.
func (w *Writer) Order(all []*Sketch) (order []int) {
	groups, without := groupEqual(all)
	before := sketches{} // sketches in the order so far, with numbers after those of the file
	number := len(w.likes)
	if len(w.file.entries) == 0 && len(groups) > 0 {
		first := mostTypical(groups)
		order = append(order, groups[first].numbers...)
		before.add(groups[first].sketch, number)
		groups = slices.Delete(groups, first, first+1)
	}
	for some := range slices.Chunk(groups, orderAtOnce) {
		nearest := make([]int, len(some)) // classes shared with the most similar sketch before, -1 once it is in the order itself
		for i := range some {
			nearest[i] = max(w.alike.most(some[i].sketch), before.most(some[i].sketch))
		}
		for range some {
			next := largest(nearest)
			nearest[next] = -1
			order = append(order, some[next].numbers...)
			number++
			before.add(some[next].sketch, number)
			for i := range some {
				if nearest[i] >= 0 {
					nearest[i] = max(nearest[i], some[i].sketch.alike(some[next].sketch))
				}
			}
		}
	}
	return append(order, without...)
}

// equalSketches is a sketch and the numbers of all sketches that are equal to it.
type equalSketches struct {
	sketch  *Sketch
	numbers []int
}

// groupEqual groups equal sketches, in order of their first numbers. It returns the numbers of nil sketches apart.
func groupEqual(all []*Sketch) (groups []equalSketches, without []int) {
	at := make(map[Sketch]int)
	for number, s := range all {
		if s == nil {
			without = append(without, number)
			continue
		}
		group, ok := at[*s]
		if !ok {
			group = len(groups)
			at[*s] = group
			groups = append(groups, equalSketches{sketch: s})
		}
		groups[group].numbers = append(groups[group].numbers, number)
	}
	return groups, without
}

// mostTypical returns the first of the groups whose sketch shares the most classes with all sketches.
func mostTypical(groups []equalSketches) int {
	having := make(map[class]int) // sketches with a class
	for _, g := range groups {
		for i, hash := range g.sketch {
			having[class{i, hash}] += len(g.numbers)
		}
	}
	shared := make([]int, len(groups))
	for n, g := range groups {
		for i, hash := range g.sketch {
			shared[n] += having[class{i, hash}]
		}
	}
	return largest(shared)
}

// most returns how many classes the most similar sketch shares with s.
func (x *sketches) most(s *Sketch) (shared int) {
	for _, n := range x.to(s) {
		shared = max(shared, n)
	}
	return shared
}

// largest returns the index of the first of the largest numbers.
func largest(numbers []int) (at int) {
	for i, n := range numbers {
		if n > numbers[at] {
			at = i
		}
	}
	return at
}
