package manifest

// A File is the content of one manifest. Refused pods and objects are only in Problems. It
// is immutable.
type File struct {
	Pods     []*Pod // in the order of the text; two may have the same key
	Objects  Objects
	Problems []Problem // by document, and by line within each
}

// Refused reports whether a document was refused, so that the File must not replace an
// earlier valid version.
func (f *File) Refused() bool {
	for i := range f.Problems {
		if f.Problems[i].Refused {
			return true
		}
	}
	return false
}
