package manifest

import (
	"maps"
	"slices"
	"strings"
)

// suggest is what to do about an unknown field: the known one that was likely
// meant, as the rest of a sentence.
func suggest(key string, fields map[string]*shape) string {
	best, least := "", 4
	for _, known := range slices.Sorted(maps.Keys(fields)) {
		if strings.EqualFold(key, known) {
			best = known
			break
		}
		// A third of the letters wrong is a typo, more is another word.
		if d := distance(key, known, least); d < least && 3*d <= max(len(known), 3) {
			best, least = known, d
		}
	}
	if best == "" {
		return "; remove it"
	}
	return `; did you mean "` + best + `"?`
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
