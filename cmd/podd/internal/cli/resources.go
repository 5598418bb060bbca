package cli

import (
	"fmt"
	"slices"
	"strings"

	"podd/cmd/podd/internal/client"
)

// chooseResources returns the resource types that a user has named. The parameter words contains
// one or more names, separated by commas. A name is the plural, singular or short name of a type,
// such as "pods" or "po", or a category, such as "all".
func chooseResources(all []client.Resource, words string) ([]client.Resource, error) {
	var chosen []client.Resource
	for word := range strings.SplitSeq(strings.ToLower(words), ",") {
		found := filter(all, func(r client.Resource) bool { return r.Matches(word) })
		if len(found) > 0 {
			found = found[:1] // the core group precedes other groups
		} else if found = filter(all, func(r client.Resource) bool { return slices.Contains(r.Categories, word) }); len(found) == 0 {
			return nil, unknownResourceError(all, word)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// unknownResourceError returns the error for a word that is no resource type.
func unknownResourceError(all []client.Resource, word string) error {
	var names []string
	for _, r := range all {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return fmt.Errorf("podd does not have a resource type %q; it has %s", word, strings.Join(names, ", "))
}
