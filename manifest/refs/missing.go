package refs

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"podd/manifest"
	"podd/manifest/wording"
)

// missingRef is a missing object, a missing key of an object, or a CSI volume that cannot be used.
type missingRef struct {
	Ref
	object string // kind and name
	reason string // what is missing
	remedy string // what the user must do; "" if the missing object must be created
}

// blocker returns the reason why a pod of a manifest cannot be set up yet. Until the source of the
// pod was read completely, the pod also waits for missing optional objects, because the source may
// still contain them.
func (r *resolver) blocker(p *manifest.Pod, refs []Ref) Blocker {
	isComplete := r.set.CompleteSources[p.Origin.Source]
	missingRefs := slices.DeleteFunc(r.missingRefs(p, refs), func(l missingRef) bool {
		return l.role == forPull || l.role == forEphemeral || l.Optional && isComplete
	})
	if len(missingRefs) == 0 {
		return Blocker{}
	}
	firstMissing := missingRefs[0]
	text := fmt.Sprintf("%s (%s) %s", firstMissing.object, p.Origin.ShortLocation(firstMissing.FieldPath), firstMissing.reason)
	text += formatOtherMissing(p, missingRefs[1:])
	if !isComplete {
		text += "; the source of the pod has not been read completely yet"
	}
	return Blocker{MissingMessage: text, Volume: firstMissing.volumeOf(p.Object), Reason: "CreateContainerConfigError", Remedy: firstMissing.remedy}
}

// maxOtherMissing is the maximum number of missing objects in a message, in addition to the first.
const maxOtherMissing = 3

// formatOtherMissing returns a text that lists further missing objects; "" if there are none.
func formatOtherMissing(p *manifest.Pod, missing []missingRef) string {
	if len(missing) == 0 {
		return ""
	}
	var descriptions []string
	for _, l := range missing[:min(len(missing), maxOtherMissing)] {
		descriptions = append(descriptions, l.object+" at "+p.Origin.ShortLocation(l.FieldPath))
	}
	text := " (also missing: " + strings.Join(descriptions, ", ")
	if n := len(missing) - maxOtherMissing; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text + ")"
}

// CheckMissing returns Problems for missing objects and keys to which pods refer. If several pods
// refer to a missing object, each of these pods gets a Problem. It ignores optional references,
// except to Secrets for image pulls. For these it returns warnings.
func CheckMissing(pods []*manifest.Pod, objects map[string]manifest.Objects, severity manifest.Severity) []manifest.Problem {
	var problems []manifest.Problem
	r := newResolver(&manifest.Set{ObjectsBySource: objects})
	for _, p := range pods {
		reported := map[string]bool{}
		for _, l := range r.missingRefs(p, r.list(p)) {
			text := l.object + " " + l.reason
			if l.Optional && l.role != forPull || reported[text] {
				continue
			}
			reported[text] = true
			problem := manifest.Problem{Severity: severity, Path: p.Origin.Path, Position: p.Origin.Position(l.FieldPath), Pod: p.Key, FieldPath: l.FieldPath}
			problem.Message = text + "; " + cmp.Or(l.remedy, "the pod waits until it exists")
			if l.role == forPull {
				problem.Severity, problem.Message = manifest.Warning, text+"; the image is pulled without it"
			}
			problems = append(problems, problem)
		}
	}
	return problems
}

// missingRefs returns the missing objects and keys to which p refers. The parameter refs contains
// the references of p.
func (r *resolver) missingRefs(p *manifest.Pod, refs []Ref) []missingRef {
	sourceLookup := r.lookupFor(p.Origin.Source)
	missingRefs := sourceLookup.unusableVolumes(p)
	for _, u := range refs {
		if u.TrustBundle != nil && len(sourceLookup.selectTrustBundles(u.TrustBundle)) > 0 {
			continue
		}
		if u.Object.Kind == manifest.TrustBundlesKind {
			missingRefs = append(missingRefs, missingRef{Ref: u, object: describeSelection(u.TrustBundle), reason: "is " + describeSearch(p, u.Object, r.set.ObjectsBySource)})
			continue
		}
		object := u.describeObject()
		origin, exists := sourceLookup.Origins[u.Object]
		if !exists {
			missingRefs = append(missingRefs, missingRef{Ref: u, object: object, reason: "is " + describeSearch(p, u.Object, r.set.ObjectsBySource)})
			continue
		}
		if u.Object.Kind == manifest.ClaimKind {
			missingRefs = append(missingRefs, sourceLookup.missingForClaim(p, u, object)...)
		}
		for _, key := range u.Keys {
			if !sourceLookup.hasKey(u.Object, key, u.role) {
				missingRefs = append(missingRefs, missingRef{Ref: u, object: object, reason: fmt.Sprintf("at %s has no key %q%s", origin.ShortLocation(""), wording.Clip(key, 80), formatSuggestion(key, sourceLookup.keys(u.Object)))})
			}
		}
	}
	return missingRefs
}

// list returns the references of a pod, including those of ListDriverRefs.
func (r *resolver) list(p *manifest.Pod) []Ref {
	if p == nil {
		return nil
	}
	return append(slices.Clip(List(p)), r.lookupFor(p.Origin.Source).driverRefs(p.Object)...)
}

// unusableVolumes returns an element for each CSI volume of a pod that the pod cannot use although
// its CSIDriver exists.
func (o *lookup) unusableVolumes(p *manifest.Pod) []missingRef {
	var unusable []missingRef
	for i := range p.Object.Spec.Volumes {
		d := o.csiVolume(p.Object, i)
		if d == nil {
			continue
		}
		if reason, remedy := o.unusableReason(d); reason != "" {
			object := "CSI volume " + strconv.Quote(d.volume)
			if d.pv != nil {
				object = "PersistentVolume " + strconv.Quote(d.pv.Name)
			}
			unusable = append(unusable, missingRef{d.driverRef(), object, reason, remedy})
		}
	}
	return unusable
}

// describeObject returns the kind and the name of the object. If a PersistentVolume refers to it,
// the text also contains the namespace and the name of the PersistentVolume, because the pod does
// not show them.
func (u *Ref) describeObject() string {
	if u.PersistentVolume == "" {
		return fmt.Sprintf("%s %q", u.Object.Kind, u.Object.Name)
	}
	name := u.Object.Name
	if u.Object.Namespace != "" {
		name = u.Object.NamespacedName.String()
	}
	return fmt.Sprintf("%s %q of PersistentVolume %q", u.Object.Kind, name, u.PersistentVolume)
}

// describeSearch returns a text that describes where podd has searched for a missing object. The
// text also names a source or namespace that contains the object, or suggests a similar name.
func describeSearch(p *manifest.Pod, ref manifest.ObjectRef, objects map[string]manifest.Objects) string {
	text := "not defined in any of the files"
	if p.Origin.Source != "" {
		text = "not defined in " + p.Origin.Source
	}
	for _, otherSource := range slices.Sorted(maps.Keys(objects)) {
		if _, exists := objects[otherSource].Origins[ref]; exists {
			return text + " (" + otherSource + " defines one, but only pods of that source can use it)"
		}
	}
	var names, namespaces []string
	for otherRef := range objects[p.Origin.Source].Origins {
		switch {
		case otherRef.Kind != ref.Kind:
		case otherRef.Namespace == ref.Namespace:
			names = append(names, otherRef.Name)
		case otherRef.Name == ref.Name:
			namespaces = append(namespaces, otherRef.Namespace)
		}
	}
	if len(namespaces) > 0 {
		return text + " in namespace " + ref.Namespace + " (there is one in namespace " + slices.Min(namespaces) + ")"
	}
	return text + formatSuggestion(ref.Name, names)
}

// formatSuggestion returns a text in parentheses that suggests the element of names that is most
// similar to name. It returns "" if no element is similar.
func formatSuggestion(name string, names []string) string {
	slices.Sort(names)
	if closest := wording.FindClosest(name, names); closest != "" {
		return ` (did you mean "` + closest + `"?)`
	}
	return ""
}

// hasKey reports whether a ConfigMap or Secret contains a key. For variables it ignores
// binaryData of a ConfigMap.
func (o *lookup) hasKey(ref manifest.ObjectRef, key string, role role) bool {
	if ref.Kind == manifest.SecretKind {
		_, ok := o.Secrets[ref.NamespacedName].Data[key]
		return ok
	}
	c := o.ConfigMaps[ref.NamespacedName]
	_, isInData := c.Data[key]
	_, isInBinaryData := c.BinaryData[key]
	return isInData || isInBinaryData && role == forFiles
}

func (o *lookup) keys(ref manifest.ObjectRef) []string {
	if ref.Kind == manifest.SecretKind {
		return slices.Collect(maps.Keys(o.Secrets[ref.NamespacedName].Data))
	}
	return slices.Collect(maps.Keys(o.ConfigMaps[ref.NamespacedName].Data))
}
