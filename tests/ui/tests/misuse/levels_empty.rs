use relent::levels::Levels;

static LEVELS: Levels = Levels::new(&[]);

fn main() {
    println!("{LEVELS:?}");
}
