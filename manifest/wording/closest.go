package wording

import "strings"

// FindClosest returns the candidate that is most similar to a misspelled word. If several are
// equally similar, FindClosest returns the first. It returns "" if in every candidate more than
// three letters, or more than a third of the letters, differ. Case is ignored.
func FindClosest(word string, candidates []string) string {
	closest, closestDistance := "", 4
	word = strings.ToLower(word)
	for _, candidate := range candidates {
		d := editDistance(word, strings.ToLower(candidate), closestDistance)
		if d < closestDistance && 3*d <= max(len(candidate), 3) {
			closest, closestDistance = candidate, d
		}
	}
	return closest
}

// editDistance returns the number of insertions, deletions, replacements and transpositions of
// letters between two words (optimal string alignment), but at most limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	// row contains the distances between the first i letters of a and every beginning of b.
	// last and beforeLast are the rows of i-1 and i-2.
	beforeLast, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		beforeLast, last, row = last, row, beforeLast
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, row[j-1]+1, last[j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], beforeLast[j-2]+1)
			}
		}
	}
	return min(row[len(b)], limit)
}
