package config

import "strings"

// Nearest returns the candidate that is most similar to a mistyped word. It returns "" if for
// every candidate more than a third of the letters, or more than three, differ. Case is
// ignored.
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", min(len(word)/3, 3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance returns the number of insertions, deletions, replacements and transpositions
// between two words (optimal string alignment).
func distance(a, b string) int {
	if len(a)+len(b) > 256 { // limits the work for long input
		return 256
	}
	var before, above []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row = above, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
