package rundir

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Of each interface the longest delay is kept.
func TestNoteModem(t *testing.T) {
	f := Folder(t.TempDir())
	at := time.Unix(1_800_000_000, 0).UTC()
	for _, m := range []Modem{
		{"wan0", 50 * time.Millisecond, at}, {"wan1", 70 * time.Millisecond, at}, {"wan0", 40 * time.Millisecond, at.Add(time.Hour)}, {"wan1", 200 * time.Millisecond, at.Add(time.Hour)},
	} {
		if err := f.NoteModem(m); err != nil {
			t.Fatal(err)
		}
	}
	var got []Modem
	if err := ReadJSON(f.Modems(), &got); err != nil {
		t.Fatal(err)
	}
	want := []Modem{{"wan0", 50 * time.Millisecond, at}, {"wan1", 200 * time.Millisecond, at.Add(time.Hour)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
