package refs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"podd/manifest"
	"podd/manifest/wording"
)

// missingRef is a missing object, or a missing key of an object.
type missingRef struct {
	Ref
	object string // kind and name
	text   string // what is missing
}

// wait returns what a pod cannot start without. Until its source was read completely, an
// optional object may still be found, so the pod waits for it too.
func (r *resolver) wait(p *manifest.Pod, used []Ref) Wait {
	complete := r.set.Complete[p.Origin.Source]
	missing := slices.DeleteFunc(r.missingRefs(p, used), func(l missingRef) bool {
		return l.role == forPull || l.role == forEphemeral || l.Optional && complete
	})
	if len(missing) == 0 {
		return Wait{}
	}
	first := missing[0]
	text := fmt.Sprintf("%s (%s) %s", first.object, p.Origin.Short(first.Field), first.text)
	text += formatOthers(p, missing[1:])
	if !complete {
		text += ", which was not read completely yet"
	}
	return Wait{Missing: text, Volume: first.volumeOf(p.Spec), Reason: "CreateContainerConfigError"}
}

// maxOthers is the maximum number of further missing objects in a message.
const maxOthers = 3

// formatOthers lists further missing objects, or returns "".
func formatOthers(p *manifest.Pod, missing []missingRef) string {
	if len(missing) == 0 {
		return ""
	}
	var named []string
	for _, l := range missing[:min(len(missing), maxOthers)] {
		named = append(named, l.object+" at "+p.Origin.Short(l.Field))
	}
	text := " (also missing: " + strings.Join(named, ", ")
	if n := len(missing) - maxOthers; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + ")"
}

// CheckMissing returns Problems for the objects and keys that pods refer to and that are
// missing, one for each object and pod. Optional references are ignored.
func CheckMissing(pods []*manifest.Pod, objects map[string]manifest.Objects, severity manifest.Severity) []manifest.Problem {
	var problems []manifest.Problem
	r := newResolver(&manifest.Set{Objects: objects})
	for _, p := range pods {
		reported := map[string]bool{}
		for _, l := range r.missingRefs(p, List(p)) {
			text := l.object + " " + l.text
			if l.Optional && l.role != forPull || reported[text] {
				continue
			}
			reported[text] = true
			problem := manifest.Problem{Severity: severity, Path: p.Origin.Path, Position: p.Origin.Position(l.Field), Pod: p.Key, Field: l.Field}
			problem.Message = text + "; the pod waits until it exists"
			if l.role == forPull {
				problem.Severity, problem.Message = manifest.Warning, text+"; the image is pulled without it"
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

func (r *resolver) missingRefs(p *manifest.Pod, used []Ref) []missingRef {
	own := r.source(p.Origin.Source)
	var missing []missingRef
	for _, u := range used {
		what := fmt.Sprintf("%s %q", u.Object.Kind, u.Object.Name)
		origin, there := own.Origins[u.Object]
		if !there {
			missing = append(missing, missingRef{u, what, "is " + searchedIn(p, u.Object, r.set.Objects)})
			continue
		}
		if u.Object.Kind == manifest.ClaimKind {
			missing = append(missing, own.missingOfClaim(p, u, what)...)
		}
		for _, key := range u.Keys {
			if !own.has(u.Object, key, u.role) {
				missing = append(missing, missingRef{u, what, fmt.Sprintf("at %s has no key %q%s", origin.Short(""), wording.Clip(key, 80), suggestion(key, own.keys(u.Object)))})
			}
		}
	}
	return missing
}

// searchedIn describes where an object was searched.
func searchedIn(p *manifest.Pod, ref manifest.ObjectRef, objects map[string]manifest.Objects) string {
	text := "not defined in any of the files"
	if p.Origin.Source != "" {
		text = "not defined in " + p.Origin.Source
	}
	for _, other := range slices.Sorted(maps.Keys(objects)) {
		if _, there := objects[other].Origins[ref]; there {
			return text + " (the one in " + other + " is for pods from there only)"
		}
	}
	var names, namespaces []string
	for have := range objects[p.Origin.Source].Origins {
		switch {
		case have.Kind != ref.Kind:
		case have.Namespace == ref.Namespace:
			names = append(names, have.Name)
		case have.Name == ref.Name:
			namespaces = append(namespaces, have.Namespace)
		}
	}
	if len(namespaces) > 0 {
		return text + " in namespace " + ref.Namespace + " (there is one in " + slices.Min(namespaces) + ")"
	}
	return text + suggestion(ref.Name, names)
}

// suggestion returns a suggestion for a misspelled name in parentheses, or "".
func suggestion(name string, known []string) string {
	slices.Sort(known)
	if best := wording.Closest(name, known); best != "" {
		return ` (did you mean "` + best + `"?)`
	}
	return ""
}

// has reports whether an object has a key. For a variable only the text data of a ConfigMap
// counts.
func (o *lookup) has(ref manifest.ObjectRef, key string, role role) bool {
	if ref.Kind == manifest.SecretKind {
		_, ok := o.Secrets[ref.NamespacedName].Data[key]
		return ok
	}
	c := o.ConfigMaps[ref.NamespacedName]
	_, text := c.Data[key]
	_, bytes := c.BinaryData[key]
	return text || bytes && role == forFiles
}

func (o *lookup) keys(ref manifest.ObjectRef) []string {
	if ref.Kind == manifest.SecretKind {
		return slices.Collect(maps.Keys(o.Secrets[ref.NamespacedName].Data))
	}
	return slices.Collect(maps.Keys(o.ConfigMaps[ref.NamespacedName].Data))
}
