package source

import "testing"

func TestParseAnchor(t *testing.T) {
	for _, test := range []struct {
		path, name string
		all        bool
	}{
		{"a", "a", false}, {"/a/b", "a/b", false}, {"a/*", "a", true}, {"*", "", true}, {"/*", "", true},
	} {
		if name, all, err := ParseAnchor(test.path, true); err != nil || name != test.name || all != test.all {
			t.Errorf("%q: %q, %v, %v", test.path, name, all, err)
		}
	}
	for _, path := range []string{"", "/", "a//b", "a/../b", "a*", "a/*/b", "a\x1bb", "a\"b"} {
		if name, _, err := ParseAnchor(path, true); err == nil {
			t.Errorf("%q is read as %q", path, name)
		}
	}
	if _, _, err := ParseAnchor("a/*", false); err == nil {
		t.Error("a/* is read as one anchor")
	}
}

func TestAnchors(t *testing.T) {
	a := Anchors{}.With(Anchor{Path: "b", Text: "1"}).With(Anchor{Path: "a"}).With(Anchor{Path: "b", Text: "2"})
	if len(a) != 2 || a[0].Path != "a" || a[1].Text != "2" {
		t.Errorf("%+v", a)
	}
	left := a.Without(func(path string) bool { return path == "a" })
	if len(left) != 1 || len(a) != 2 || left.Equal(a) || !left.Equal(Anchors{{Path: "b", Text: "2"}}) {
		t.Errorf("%+v of %+v", left, a)
	}
}
