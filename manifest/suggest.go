package manifest

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// suggest is what to do about an unknown field: the known one that was likely
// meant, as the rest of a sentence.
func suggest(key string, fields map[string]*shape) string {
	best := closest(key, slices.Values(slices.Sorted(maps.Keys(fields))))
	if best == "" {
		return "; remove it"
	}
	return `; did you mean "` + best + `"?`
}

// closest is the first of the sorted words that is most like a misspelt one, ""
// when none is like it.
func closest(word string, sorted iter.Seq[string]) string {
	best, least := "", 4
	for known := range sorted {
		if strings.EqualFold(word, known) {
			return known
		}
		// A third of the letters wrong is a typo, more is another word.
		if d := distance(word, known, least); d < least && 3*d <= max(len(known), 3) {
			best, least = known, d
		}
	}
	return best
}

// distance counts the insertions, deletions and replacements between two words
// (Levenshtein). It answers limit for anything that is limit or more apart.
func distance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return min(row[len(b)], limit)
}
