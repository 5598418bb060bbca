package wording

import (
	"iter"
	"strings"
)

// Closest returns the first of the sorted words that is most similar to word, or "" if none
// is similar.
func Closest(word string, sorted iter.Seq[string]) string {
	best, least := "", 4
	for known := range sorted {
		if strings.EqualFold(word, known) {
			return known
		}
		// A word with at most a third of wrong letters counts as a typo.
		if d := distance(word, known, least); d < least && 3*d <= max(len(known), 3) {
			best, least = known, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions and replacements between two words
// (Levenshtein distance), but at most limit.
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
