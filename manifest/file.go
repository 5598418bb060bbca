package manifest

// A File is the decoded content of one manifest. It is immutable. A refused pod or object
// appears only in Problems.
type File struct {
	Pods     []*Pod // in the order of the text; two pods may have the same key
	Objects  Objects
	Problems []Problem // sorted by document, then by line
}

// HasRefusedDocument reports whether a document was refused. If so, the File must not replace an
// earlier valid File of the same manifest.
func (f *File) HasRefusedDocument() bool {
	for i := range f.Problems {
		if f.Problems[i].CausesRefusal {
			return true
		}
	}
	return false
}
