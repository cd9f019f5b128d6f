// GORM's second version: models, associations, queries and migrations as its documentation has them. Its own tests are a module
// that no proxy has; those of its first version are run whole.
package programs

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type Company struct {
	ID   uint
	Name string `gorm:"size:60;uniqueIndex:one_name"`
}

type Language struct {
	Code string `gorm:"primaryKey;size:8"`
	Name string
}

type Pet struct {
	gorm.Model
	Name   string
	UserID *uint
	Toys   []Toy `gorm:"polymorphic:Owner"`
}

type Toy struct {
	ID        uint
	Name      string
	OwnerID   uint
	OwnerType string `gorm:"size:20;index:owner"`
}

type User struct {
	gorm.Model
	Name      string  `gorm:"size:60;not null;index:name_age,priority:1"`
	Age       uint8   `gorm:"index:name_age,priority:2,sort:desc;check:grown,age > 0"`
	Email     string  `gorm:"size:100;uniqueIndex;comment:where to write"`
	Balance   float64 `gorm:"type:decimal(12,2);default:1.50"`
	Birthday  *time.Time
	Active    bool `gorm:"default:true"`
	Code      []byte
	Both      string `gorm:"->;type:varchar(80) GENERATED ALWAYS AS (concat(name,'-',age)) STORED"`
	Nick      sql.NullString
	Stamp     int64 `gorm:"autoUpdateTime:milli"`
	CompanyID *uint
	Company   Company `gorm:"constraint:OnUpdate:CASCADE,OnDelete:SET NULL"`
	ManagerID *uint
	Team      []User `gorm:"foreignKey:ManagerID"`
	Pets      []*Pet
	Languages []Language `gorm:"many2many:user_languages;constraint:OnDelete:CASCADE"`
}

var all = []any{&Company{}, &Language{}, &User{}, &Pet{}, &Toy{}}

func open(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := gorm.Open(mysql.Open(os.Getenv("GORM_DSN")), &gorm.Config{Logger: logger.Discard, TranslateError: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if own, err := db.DB(); err == nil {
			own.Close()
		}
	})
	return db
}

// fresh has the models' tables, empty, and three users.
func fresh(t *testing.T) *gorm.DB {
	db := open(t)
	ok(t, db.Migrator().DropTable(append([]any{"user_languages"}, all...)...))
	ok(t, db.AutoMigrate(all...))
	ok(t, db.Create([]User{
		{Name: "ann", Age: 30, Email: "ann@x", Company: Company{Name: "one"}, Pets: []*Pet{{Name: "cat", Toys: []Toy{{Name: "ball"}}}}, Languages: []Language{{"de", "German"}, {"en", "English"}}},
		{Name: "bob", Age: 20, Email: "bob@x", Company: Company{Name: "two"}, Team: []User{{Name: "cid", Age: 40, Email: "cid@x"}}},
	}).Error)
	return db
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%v is not %v", got, want)
	}
}

func names(t *testing.T, query *gorm.DB) (found []string) {
	t.Helper()
	ok(t, query.Model(&User{}).Order("users.name").Pluck("users.name", &found).Error)
	return
}

// What was migrated is what is wanted: a second time changes nothing.
func TestMigrateAgain(t *testing.T) {
	db := fresh(t)
	changes := 0
	ok(t, db.Callback().Raw().Before("gorm:raw").Register("count", func(*gorm.DB) { changes++ }))
	ok(t, db.AutoMigrate(all...))
	same(t, changes, 0)
}

func TestMigrator(t *testing.T) {
	db := fresh(t)
	type Thing struct {
		ID   uint
		Name string `gorm:"size:20"`
	}
	m := db.Migrator()
	ok(t, db.AutoMigrate(&Thing{}))
	ok(t, db.Create(&Thing{Name: "x"}).Error)
	{
		type Thing struct {
			ID    uint
			Name  string  `gorm:"size:120;not null;default:none;index"`
			Price float64 `gorm:"type:decimal(10,2);comment:each"`
		}
		ok(t, db.AutoMigrate(&Thing{}))
		ok(t, m.RenameColumn(&Thing{}, "price", "cost"))
		same(t, m.HasColumn(&Thing{}, "cost"), true)
		same(t, m.HasIndex(&Thing{}, "idx_things_name"), true)
		ok(t, m.RenameIndex(&Thing{}, "idx_things_name", "by_name"))
		ok(t, m.DropIndex(&Thing{}, "by_name"))
		ok(t, m.DropColumn(&Thing{}, "cost"))
		types, err := m.ColumnTypes(&Thing{})
		ok(t, err)
		size, _ := types[1].Length()
		nullable, _ := types[1].Nullable()
		value, _ := types[1].DefaultValue()
		same(t, []any{types[1].Name(), size, nullable, value}, []any{"name", int64(120), false, "none"})
	}
	same(t, m.HasConstraint(&User{}, "fk_users_company"), true)
	same(t, m.HasConstraint(&User{}, "grown"), true)
	ok(t, m.DropConstraint(&User{}, "grown"))
	ok(t, m.CreateConstraint(&User{}, "grown"))
	indexes, err := m.GetIndexes(&User{})
	ok(t, err)
	found := 0
	for _, index := range indexes {
		if index.Name() == "name_age" {
			same(t, index.Columns(), []string{"name", "age"})
			found++
		}
		if unique, _ := index.Unique(); unique && index.Name() == "idx_users_email" {
			found++
		}
	}
	same(t, found, 2)
	ok(t, m.RenameTable("things", "stuff"))
	tables, err := m.GetTables()
	ok(t, err)
	same(t, len(tables), 7)
	ok(t, m.CreateView("grown_ups", gorm.ViewOption{Query: db.Model(&User{}).Where("age > 25"), Replace: true}))
	ok(t, m.DropView("grown_ups"))
	ok(t, m.DropTable("stuff"))
	same(t, m.CurrentDatabase(), "gorm")
}

func TestPreloadAndJoins(t *testing.T) {
	db := fresh(t)
	var ann User
	ok(t, db.Preload("Pets.Toys").Preload("Languages", func(db *gorm.DB) *gorm.DB { return db.Order("code") }).Joins("Company").First(&ann, "users.name = ?", "ann").Error)
	same(t, []any{ann.Company.Name, ann.Pets[0].Toys[0].Name, len(ann.Languages), ann.Both, ann.Balance}, []any{"one", "ball", 2, "ann-30", 1.5})
	same(t, names(t, db.InnerJoins("Company", db.Where(&Company{Name: "two"}))), []string{"bob"})
	var bob User
	ok(t, db.Preload(clause.Associations).First(&bob, "name = ?", "bob").Error)
	same(t, bob.Team[0].Name, "cid")
}

func TestAssociations(t *testing.T) {
	db := fresh(t)
	var ann User
	ok(t, db.First(&ann, "name = ?", "ann").Error)
	langs := func() *gorm.Association { return db.Model(&ann).Association("Languages") }
	ok(t, langs().Append(&Language{"fr", "French"}))
	same(t, langs().Count(), int64(3))
	ok(t, langs().Delete(&Language{Code: "de"}))
	ok(t, langs().Replace([]Language{{"it", "Italian"}, {"es", "Spanish"}}))
	ok(t, langs().Clear())
	same(t, langs().Count(), int64(0))
	ok(t, db.Model(&ann).Association("Pets").Clear())
	ok(t, db.Select(clause.Associations).Delete(&ann).Error)
	ok(t, db.Unscoped().Delete(&Company{}, "name = ?", "one").Error)
	ok(t, db.Unscoped().First(&ann, "name = ?", "ann").Error)
	same(t, ann.CompanyID, (*uint)(nil))
}

func TestConditions(t *testing.T) {
	db := fresh(t)
	same(t, names(t, db.Where("age BETWEEN ? AND ?", 25, 35).Or(db.Where("name = ?", "cid").Not("age", 1))), []string{"ann", "cid"})
	same(t, names(t, db.Where(map[string]any{"name": []string{"ann", "bob"}})), []string{"ann", "bob"})
	same(t, names(t, db.Where("(name, age) IN ?", [][]any{{"ann", 30}, {"bob", 1}})), []string{"ann"})
	same(t, names(t, db.Where("age > (?)", db.Table("users").Select("AVG(age)"))), []string{"cid"})
	same(t, names(t, db.Where("name LIKE @n AND age = @a", sql.Named("n", "b%"), sql.Named("a", 20))), []string{"bob"})
	var counts []struct {
		Old bool
		N   int
	}
	ok(t, db.Model(&User{}).Select("age > 25 AS old, COUNT(*) AS n").Group("old").Having("n > ?", 0).Order("old").Scan(&counts).Error)
	same(t, len(counts), 2)
	var n int64
	ok(t, db.Model(&User{}).Distinct("age").Count(&n).Error)
	same(t, n, int64(3))
	ok(t, db.Table("(?) AS u", db.Model(&User{}).Select("name")).Count(&n).Error)
	same(t, n, int64(3))
}

func TestBatchesAndRows(t *testing.T) {
	db := fresh(t)
	many := make([]Toy, 500)
	ok(t, db.CreateInBatches(many, 77).Error)
	batches := 0
	var found []Toy
	ok(t, db.FindInBatches(&found, 100, func(*gorm.DB, int) error { batches++; return nil }).Error)
	same(t, batches, 6)
	rows, err := db.Model(&Toy{}).Rows()
	ok(t, err)
	defer rows.Close()
	n := 0
	for rows.Next() {
		var toy Toy
		ok(t, db.ScanRows(rows, &toy))
		n++
	}
	same(t, n, 501)
}

func TestUpsert(t *testing.T) {
	db := fresh(t)
	ok(t, db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "email"}}, DoUpdates: clause.AssignmentColumns([]string{"age"})}).Create(&User{Name: "x", Age: 31, Email: "ann@x"}).Error)
	same(t, names(t, db.Where("age = 31")), []string{"ann"})
	ok(t, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&User{Name: "x", Age: 1, Email: "ann@x"}).Error)
	ok(t, db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Language{"de", "Deutsch"}).Error)
	var german Language
	ok(t, db.Clauses(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}).First(&german, "code = ?", "de").Error)
	same(t, german.Name, "Deutsch")
	ok(t, db.Clauses(clause.Locking{Strength: "SHARE", Table: clause.Table{Name: clause.CurrentTable}}).Find(&[]User{}).Error)
	ok(t, db.Clauses(clause.Insert{Modifier: "IGNORE"}).Create(&Language{"de", "again"}).Error)
	var first User
	ok(t, db.Where(User{Name: "new"}).Attrs(User{Age: 5, Email: "new@x"}).FirstOrCreate(&first).Error)
	same(t, first.Age, uint8(5))
}

func TestUpdatesAndDeletes(t *testing.T) {
	db := fresh(t)
	ok(t, db.Model(&User{}).Where("name = ?", "ann").Updates(map[string]any{"age": gorm.Expr("age + ?", 1), "nick": "a"}).Error)
	same(t, names(t, db.Where("age = 31 AND nick = 'a'")), []string{"ann"})
	ok(t, db.Model(&User{}).Where("company_id IS NOT NULL").Update("name", db.Model(&Company{}).Select("name").Where("companies.id = users.company_id")).Error)
	same(t, names(t, db), []string{"cid", "one", "two"})
	same(t, db.Model(&User{}).Update("age", 1).Error, gorm.ErrMissingWhereClause)
	ok(t, db.Where("name = ?", "cid").Order("id").Limit(1).Delete(&User{}).Error)
	same(t, len(names(t, db)), 2)
	same(t, len(names(t, db.Unscoped())), 3)
	ok(t, db.Unscoped().Where("1 = 1").Delete(&Pet{}).Error)
}

func TestTransactions(t *testing.T) {
	db := fresh(t)
	lost := errors.New("lost")
	err := db.Transaction(func(tx *gorm.DB) error {
		ok(t, tx.Create(&Company{Name: "kept"}).Error)
		same(t, tx.Transaction(func(inner *gorm.DB) error { ok(t, inner.Create(&Company{Name: "inner"}).Error); return lost }), lost)
		return nil
	}, &sql.TxOptions{Isolation: sql.LevelSerializable})
	ok(t, err)
	same(t, db.Transaction(func(tx *gorm.DB) error { ok(t, tx.Create(&Company{Name: "gone"}).Error); return lost }), lost)
	var found []string
	ok(t, db.Model(&Company{}).Order("id").Pluck("name", &found).Error)
	same(t, found, []string{"one", "two", "kept"})
	if db.Transaction(func(tx *gorm.DB) error { return tx.Create(&Company{Name: "no"}).Error }, &sql.TxOptions{ReadOnly: true}) == nil {
		t.Fatal("a transaction that only reads has written")
	}
	tx := db.Begin()
	ok(t, tx.SavePoint("a").Error)
	ok(t, tx.Create(&Company{Name: "back"}).Error)
	ok(t, tx.RollbackTo("a").Error)
	ok(t, tx.Commit().Error)
}

func TestErrors(t *testing.T) {
	db := fresh(t)
	same(t, errors.Is(db.Create(&User{Name: "x", Age: 1, Email: "ann@x"}).Error, gorm.ErrDuplicatedKey), true)
	none := uint(999)
	same(t, errors.Is(db.Create(&User{Name: "x", Age: 1, Email: "x@x", CompanyID: &none}).Error, gorm.ErrForeignKeyViolated), true)
	same(t, errors.Is(db.Create(&User{Name: "x", Age: 0, Email: "x@x"}).Error, nil), false)
	same(t, errors.Is(db.First(&User{}, 999).Error, gorm.ErrRecordNotFound), true)
	same(t, errors.Is(db.Exec("SELECT * FROM nothing").Error, nil), false)
}

func TestPreparedAndContext(t *testing.T) {
	db := fresh(t).Session(&gorm.Session{PrepareStmt: true})
	for range 3 {
		same(t, names(t, db.Where("age > ?", 25)), []string{"ann", "cid"})
	}
	soon, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if db.WithContext(soon).Exec("SELECT SLEEP(20)").Error == nil {
		t.Fatal("a statement has outlived its context")
	}
	var n int
	ok(t, db.Raw("WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < ?) SELECT SUM(v) FROM n", 4).Scan(&n).Error)
	same(t, n, 10)
}

func TestTimes(t *testing.T) {
	db := fresh(t)
	birthday := time.Date(2000, 2, 29, 1, 2, 3, 456_000_000, time.UTC)
	ok(t, db.Model(&User{}).Where("name = ?", "ann").Update("birthday", birthday).Error)
	var ann User
	ok(t, db.First(&ann, "birthday = ?", birthday).Error)
	same(t, ann.Birthday.UTC(), birthday)
}
