package kubectl

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableIsReadByItsColumns(t *testing.T) {
	for name, tc := range map[string]struct {
		stdout string
		want   Table
	}{
		"a cell may hold a space": {
			"NAME    STATUS        CREATETIME\na--x    ExecuteDone   2023-05-11 15:46:13\n",
			Table{[]string{"NAME", "STATUS", "CREATETIME"}, []map[string]string{
				{"NAME": "a--x", "STATUS": "ExecuteDone", "CREATETIME": "2023-05-11 15:46:13"},
			}},
		},
		"a cell may be empty": {
			"NAME    STATUS   CREATETIME\na                2023\n",
			Table{[]string{"NAME", "STATUS", "CREATETIME"}, []map[string]string{
				{"NAME": "a", "STATUS": "", "CREATETIME": "2023"},
			}},
		},
		"nothing is no rows": {"", Table{Header: []string{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ParseTable(tc.stdout)); diff != "" {
				t.Error("(-want +got):", diff)
			}
		})
	}
}
