package cli

import (
	"fmt"
	"slices"
	"strings"

	"podd/cmd/podd/internal/client"
)

// chooseResources returns the resource types that a user has named. The parameter names contains
// one or more names, separated by commas. A name is the plural, singular or short name of a type,
// such as "pods" or "po", or a category, such as "all".
func chooseResources(types []client.Resource, names string) ([]client.Resource, error) {
	var chosen []client.Resource
	for name := range strings.SplitSeq(strings.ToLower(names), ",") {
		found := filter(types, func(r client.Resource) bool { return r.Matches(name) })
		if len(found) > 0 {
			found = found[:1] // use the first type, because the types of the core group precede the types of other groups
		} else if found = filter(types, func(r client.Resource) bool { return slices.Contains(r.Categories, name) }); len(found) == 0 {
			return nil, unknownResourceError(types, name)
		}
		chosen = append(chosen, found...)
	}
	return chosen, nil
}

// unknownResourceError returns the error for a name that is no resource type.
func unknownResourceError(types []client.Resource, name string) error {
	var names []string
	for _, r := range types {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return fmt.Errorf("podd does not have a resource type %q; it has %s", name, strings.Join(names, ", "))
}
